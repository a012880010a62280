#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/dataset.h"

/// The options and the result of moving shards (move.h).
namespace kvstore::shardops {

struct MoveOptions {
  /// Checks all, reports what would be done, and changes nothing.
  bool dry_run = false;
  /// If a copy does not catch up within 10 s, blocks the commits of all clients of the old master for up to
  /// 400 ms at a time until it has. Without this, a copy never catches up with a source that writes faster
  /// than the target applies.
  bool hold_writes = false;
  /// Is called with the step, how far it is, and how much it is in all (0: not known). The move stops with
  /// CANCELLED if it returns false. May be null.
  std::function<bool(std::string_view step, uint64_t done, uint64_t total)> progress;
  /// Returns the catalog's datasets on the fleet. Those of their tables are made on the shards before they
  /// are copied that no call has needed yet, because a copy by mariadb-dump fails if a table is made
  /// meanwhile. May be null.
  std::function<absl::StatusOr<std::vector<DatasetSpec>>()> datasets;
};

struct Moved {
  /// How many groups of shards were switched to the new pair, each group at once; 0 if there was nothing to
  /// do.
  uint64_t switches = 0;
  uint64_t max_pause_ms = 0;  ///< The longest time for which clients could not use a group.
  uint64_t copied_bytes = 0;  ///< Bytes of SQL.
};

}  // namespace kvstore::shardops
