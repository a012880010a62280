#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardmap/shard_map.h"

namespace kvstore {

/// Shards first..last whose hosts differ between two maps, all in the same way.
struct ShardChange {
  /// What an operator does: opens shards, closes them, moves them to another pair, or has the slave take the
  /// master's place (promotes), or gives them another slave.
  enum class Kind { kOpened, kClosed, kMoved, kPromoted, kNewSlave };
  Kind kind = Kind::kOpened;
  uint32_t first = 0;
  uint32_t last = 0;
  std::optional<ShardRange> before;  ///< The entry that had them; none if they were not open.
  std::optional<ShardRange> after;   ///< The entry that has them; none if they are no longer open.

  /// "shards 0..511: moved from MySQL001A (slave MySQL001B) to MySQL003A (slave MySQL003B)"
  std::string ToString() const;
};

/// What changes from one map to another, in the order of shards; runs as long as they can be. Entries that
/// are only split or joined are no change.
std::vector<ShardChange> Diff(const ShardMap& before, const ShardMap& after);

}  // namespace kvstore
