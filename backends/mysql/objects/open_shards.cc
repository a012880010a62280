#include "backends/mysql/objects/open_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "idgen/object_id.h"

namespace kvstore::mysql {

std::optional<uint32_t> FirstOpenShard(const Fleet& fleet, uint32_t first, uint32_t last) {
  for (const ShardRange& range : fleet.map(ShardSpace::kId).ranges()) {
    if (range.last < first) continue;
    const uint32_t shard = std::max(first, range.first);
    return shard <= last ? std::optional(shard) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<Partition> PartitionShards(const Fleet& fleet, size_t wanted) {
  const ShardMap& map = fleet.map(ShardSpace::kId);
  const size_t together = std::max<size_t>(1, (map.open_shards() + wanted - 1) / wanted);
  std::vector<Partition> partitions;
  size_t shards = 0;
  for (const ShardRange& range : map.ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard, ++shards) {
      if (shards % together != 0) continue;
      Partition partition{.name = DatabaseName(ShardSpace::kId, shard), .range = {}};
      if (!partitions.empty()) {
        partition.ids.start = ObjectId::ValueOf(shard, 0, 0);
        partitions.back().ids.end = partition.ids.start;
      }
      partitions.push_back(std::move(partition));
    }
  }
  if (together > 1) {
    for (Partition& partition : partitions) partition.name = fmt::format("{} and following", partition.name);
  }
  return partitions;
}

}  // namespace kvstore::mysql
