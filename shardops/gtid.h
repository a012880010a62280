#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvstore::shardops {

/// How many transactions of `has`, a position of MariaDB ("0-1-17,1-4-3": domain-server-sequence), are not in
/// `lacks`: sequences of a domain count up. 0 too if either does not parse.
uint64_t Missing(std::string_view has, std::string_view lacks);

/// How many transactions one server has that another lacks, from what both say of their binary logs
/// (@@gtid_binlog_state: the last sequence of each server in each domain).
///
/// unknown  Those of servers that the other one's log says nothing of count too.
uint64_t Beyond(std::string_view has, std::string_view lacks, bool unknown);

/// What a position has of domains that `logged` says nothing of, but for what `server` wrote.
std::string OfOthers(std::string_view position, std::string_view logged, uint64_t server);

/// A position that has the later one of each domain.
std::string Union(std::string_view one, std::string_view other);

}  // namespace kvstore::shardops
