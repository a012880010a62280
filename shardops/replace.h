#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "shardops/promote.h"

namespace kvstore::shardops {

struct ReplaceOptions {
  /// Host that is to be the slave; none: the same, made new.
  std::optional<Host> by;
  /// What databases that host has are removed.
  bool discard = false;
  /// Says what would be done.
  bool dry_run = false;
  /// Bytes of SQL that were copied; false stops. May be null.
  std::function<bool(uint64_t)> progress;
};

/// Makes a slave from its master: a copy of all databases and users, from which it follows; the maps name it,
/// if it is another host. Clients go on; while there is no slave, the master answers without one. For a slave
/// that is lost, that is behind what its master still has, or that has something its master never had: an old
/// master that came back.
///
/// If it was stopped at any step, run it again, with `discard`. Until it has ended, nothing makes that host a
/// master.
///
/// FAILED_PRECONDITION if `slave` is none of the maps, the new host takes writes, is in another pair, or has
/// databases and may not discard them; a move of shards of the pair is under way. UNAVAILABLE, CANCELLED.
absl::Status ReplaceSlave(Fleet& fleet, const Host& slave, const ReplaceOptions& options);

}  // namespace kvstore::shardops
