#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Arithmetic on MariaDB's GTID positions: "0-1-17,1-4-3" is a list of domain-server-sequence, at most one of
/// each domain. Sequences of a domain count up, whichever server writes. What does not parse is left out.
namespace kvstore::shardops {

/// Returns how many transactions of the position `has` are not in the position `lacks`.
uint64_t CountMissing(std::string_view has, std::string_view lacks);

/// Returns how many transactions one server has that another lacks. Both arguments are the servers'
/// @@gtid_binlog_state: the last sequence that each server has written in each domain, as far as it is in
/// that binary log.
///
/// unknown  Whether a server of `has` that `lacks` does not mention counts as one transaction; else it counts
///          as none.
uint64_t CountBeyond(std::string_view has, std::string_view lacks, bool unknown);

/// Returns the part of `position` whose domains the position `logged` does not mention, without what the
/// server with the ID `server` wrote.
std::string PositionOfOtherDomains(std::string_view position, std::string_view logged, uint64_t server);

/// Returns the position that has, of each domain, the later one of the two positions.
std::string LatestOfEachDomain(std::string_view one, std::string_view other);

}  // namespace kvstore::shardops
