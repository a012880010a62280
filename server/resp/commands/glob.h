#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvstore::server::resp {

/// Whether a text matches a pattern, as Redis has them: * is any text, ? any byte, [abc], [a-z] and [^abc]
/// one byte of these or of all others, and \ takes the meaning from the next character. Takes time in
/// proportion to the product of both sizes at most.
bool Matches(std::string_view pattern, std::string_view text);

/// Returns a bound of the steps that Matches takes.
inline size_t MostSteps(std::string_view pattern, std::string_view text) {
  return (pattern.size() + 1) * (text.size() + 1);
}
/// More steps, about a millisecond, are left to a worker.
inline constexpr size_t kMatchStepsHere = size_t{1} << 21;

/// Returns the text with which everything begins that the pattern matches.
std::string LiteralPrefix(std::string_view pattern);

}  // namespace kvstore::server::resp
