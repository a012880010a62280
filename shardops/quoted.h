#pragma once

#include <string>
#include <string_view>

namespace kvstore::shardops {

/// Quotes and escapes a text for a statement. Only for texts of this program and of an operator's
/// configuration: what clients send is bound instead.
std::string Quoted(std::string_view text);

}  // namespace kvstore::shardops
