#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "shardops/channel.h"

namespace kvstore::shardops {

/// Compares databases of a source with their copies, which a channel keeps up to date, at one moment of the
/// source's log: by the servers' checksums of all tables. Clients go on; the channel waits a moment.
///
/// progress  tables compared, and in all; may be null.
///
/// Returns the tables that differ, or are on one side only; none: all is the same. CANCELLED if progress says
/// so.
absl::StatusOr<std::vector<std::string>> CompareCopies(HostAdmin& source, HostAdmin& target,
                                                       const Access& access,
                                                       const std::vector<std::string>& databases,
                                                       const Progress& progress);

}  // namespace kvstore::shardops
