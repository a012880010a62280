#pragma once

#include <string>
#include <string_view>

namespace kvstore::server::resp {

/// Whether a text matches a pattern, as Redis has them: * is any text, ? any byte, [abc], [a-z] and [^abc]
/// one byte of these or of all others, and \ takes the meaning from the next character. Takes time in
/// proportion to the product of both sizes at most.
bool Matches(std::string_view pattern, std::string_view text);

/// Returns the text with which everything begins that the pattern matches.
std::string LiteralPrefix(std::string_view pattern);

}  // namespace kvstore::server::resp
