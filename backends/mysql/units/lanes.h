#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "shardmap/shard_map.h"

/// Work on many shards in parallel, several shards of a host at once.
namespace kvstore::mysql {

/// Returns the shards of a map, in order.
std::vector<uint32_t> ShardsOf(const ShardMap& map);

/// Returns the shards in an order in which work on them keeps all hosts busy: one shard of each host in turn.
std::vector<uint32_t> InTurns(const ShardMap& map, const std::vector<uint32_t>& shards);

/// Calls `work` for each shard, on several threads for each host: clients, or the next step of a migration's
/// worker, wait for the result. All shards are tried; returns the first failure.
absl::Status InLanes(const ShardMap& map, const std::vector<uint32_t>& shards,
                     const std::function<absl::Status(uint32_t)>& work);
/// Does the same with the places that are grouped by shard.
absl::Status InLanes(const ShardMap& map, const std::map<uint32_t, std::vector<size_t>>& by_shard,
                     const std::function<absl::Status(uint32_t, std::span<const size_t>)>& work);

}  // namespace kvstore::mysql
