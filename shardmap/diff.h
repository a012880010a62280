#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardmap/shard_map.h"

namespace kvstore {

/// The shards first..last, whose hosts differ between two maps, all in the same way.
struct ShardChange {
  /// The operator's action: the operator opened shards, closed them, moved them to another pair, promoted
  /// their slave to be the master, or gave them another slave.
  enum class Kind { kOpened, kClosed, kMoved, kPromoted, kNewSlave };
  Kind kind = Kind::kOpened;
  uint32_t first = 0;
  uint32_t last = 0;
  std::optional<ShardRange>
      before;                       ///< The entry of the first map that has them; none if they were not open.
  std::optional<ShardRange> after;  ///< The entry of the second map; none if they are no longer open.

  /// "shards 0..511: moved from MySQL001A (slave MySQL001B) to MySQL003A (slave MySQL003B)"
  std::string ToString() const;
};

/// Returns the changes from one map to another, in the order of shards, neighbouring shards with the same
/// change in one. Entries that are only split or joined are no change.
std::vector<ShardChange> Diff(const ShardMap& before, const ShardMap& after);

}  // namespace kvstore
