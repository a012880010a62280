#pragma once

#include <cstdint>
#include <string_view>

namespace kvstore::shardops {

/// How many transactions of `has`, a position of MariaDB ("0-1-17,1-4-3": domain-server-sequence), are not in
/// `lacks`: sequences of a domain count up. 0 too if either does not parse.
uint64_t Missing(std::string_view has, std::string_view lacks);

}  // namespace kvstore::shardops
