#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "shardmap/shard_map.h"

/// The second shard space, for keys that are not IDs. The shard of a key depends on the number of mod shards,
/// so that number can never change once the first key is stored.
namespace kvstore {

/// Returns the shard of `key` among `count` shards: its MD5 hash, read as a big-endian number, modulo
/// `count`, which must not be 0. The shard of "1.2.3.4" among 4,096 is 1537. Source: "Sharding Pinterest: How
/// we scaled our MySQL fleet".
uint32_t ModShard(std::string_view key, uint32_t count);

/// Checks that `map` can be a map of mod shards: its shards are 0 to some number, without gaps.
/// INVALID_ARGUMENT names the gap.
absl::Status ValidateModMap(const ShardMap& map);

/// Returns the number of mod shards of a map that ValidateModMap accepts.
inline uint32_t ModShardCount(const ShardMap& map) { return map.open_shards(); }

/// Checks that `next` may replace `current` as the map of mod shards. FAILED_PRECONDITION if their numbers of
/// shards differ; INVALID_ARGUMENT as of ValidateModMap.
absl::Status ValidateModUpdate(const ShardMap& current, const ShardMap& next);

}  // namespace kvstore
