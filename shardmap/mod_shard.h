#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "shardmap/shard_map.h"

/// The second shard space, for keys that are not IDs. Which mod shard a key belongs to depends on how many
/// there are, for ever: the count is fixed when the first key is stored.
namespace kvstore {

/// MD5 of `key`, read as a big-endian number, modulo `count`, which must not be 0. "1.2.3.4" over 4,096 is
/// 1537. Source: "Sharding Pinterest: How we scaled our MySQL fleet".
uint32_t ModShard(std::string_view key, uint32_t count);

/// Whether `map` can be a map of mod shards: from 0 on, without gaps. INVALID_ARGUMENT names the gap.
absl::Status ValidateModMap(const ShardMap& map);

/// How many mod shards a valid map of them has.
inline uint32_t ModShardCount(const ShardMap& map) { return map.open_shards(); }

/// Whether `next` may follow `current` as the map of mod shards: FAILED_PRECONDITION if their counts differ.
absl::Status ValidateModUpdate(const ShardMap& current, const ShardMap& next);

}  // namespace kvstore
