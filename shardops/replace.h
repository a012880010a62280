#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "shardops/fleet_operator.h"

namespace kvstore::shardops {

struct ReplaceOptions {
  /// The host that becomes the slave; nullopt to rebuild the present one.
  std::optional<Host> by;
  /// Drops the databases that this host has. Without this, a host that has databases is refused.
  bool discard = false;
  /// Checks all, reports what would be done, and changes nothing.
  bool dry_run = false;
  /// Is called with the bytes of SQL that were copied; the replacement stops if it returns false. May be
  /// null.
  std::function<bool(uint64_t)> progress;
};

/// Makes a host the slave of a master: it gets a copy of all databases and users, and replicates from there;
/// if it is another host than before, the maps name it. Clients go on; while there is no slave, the master
/// acknowledges commits without one. For a slave that is lost, that lags behind what the master's logs still
/// have, or that has something its master never had, as an old master that came back may.
///
/// If it was stopped at any step, run it again, with `discard`. Until the copy is complete nothing makes that
/// host a master (CheckCopyEnded).
///
/// FAILED_PRECONDITION if `slave` is no slave in the maps; if the new host takes writes, is in another pair,
/// or has databases and `discard` is not set; or if a move of shards uses the pair. UNAVAILABLE if a host or
/// ZooKeeper cannot be reached, or the new slave does not follow; CANCELLED if `progress` returned false.
absl::Status ReplaceSlave(FleetOperator& fleet, const Host& slave, const ReplaceOptions& options);

}  // namespace kvstore::shardops
