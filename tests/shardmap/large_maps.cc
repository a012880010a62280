#include "tests/shardmap/large_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace kvstore::testing {

ShardMap FullSizeMap(uint32_t hosts, uint32_t seed) {
  const auto host = [](uint32_t number) {
    return Host{.name = fmt::format("mysql-{:04}.db.example.com", number)};
  };
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t master = 0; master < hosts; ++master) {
    for (uint32_t slave = 0; slave < hosts; ++slave) {
      if (slave != master) pairs.emplace_back(master, slave);
    }
  }
  std::mt19937 random(seed);
  std::shuffle(pairs.begin(), pairs.end(), random);
  std::vector<ShardRange> ranges;
  for (uint32_t shard = 0; shard <= ShardMap::kMaxShard; ++shard) {
    ranges.push_back({shard, shard, host(pairs[shard].first), host(pairs[shard].second)});
  }
  return *ShardMap::Create(std::move(ranges));
}

}  // namespace kvstore::testing
