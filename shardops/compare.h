#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "shardops/channel.h"

namespace kvstore::shardops {

/// Compares databases of a source with their copies, which a channel keeps up to date, by the servers'
/// checksums of all tables. Both sides are read in snapshots of one position of the source's log. Clients of
/// the source go on; the channel is paused until both snapshots have begun.
///
/// from      Where the channel has begun.
/// progress  Is called with the numbers of tables that were compared, and of all tables; may be null. The
///           comparison ends with CANCELLED if it returns false.
///
/// Returns the tables that differ or are on one side only, as "`db00001`.`pins`"; empty if all is the same.
/// DEADLINE_EXCEEDED if the channel does not reach the source's position within a minute, or the source has
/// not committed within one what it had sent to the channel; DATA_LOSS if a table cannot be read.
absl::StatusOr<std::vector<std::string>> CompareCopies(HostAdmin& source, HostAdmin& target,
                                                       const Access& access, const Position& from,
                                                       const std::vector<std::string>& databases,
                                                       const Progress& progress);

}  // namespace kvstore::shardops
