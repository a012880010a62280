#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "shardmap/shard_map.h"
#include "shardmap/weights.h"

using namespace kvstore;

/// Any bytes as a shard map, as weights and as a host are refused, or read back the same after they are
/// written, and each shard is found in its range.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = ShardMap::Parse(text); map.ok()) {
    const auto again = ShardMap::Parse(map->ToJson());
    if (!again.ok() || *again != *map || map->ranges().empty()) std::abort();
    uint32_t open = 0;
    for (const ShardRange& range : map->ranges()) {
      if (map->Find(range.first) != &range || map->Find(range.last) != &range) std::abort();
      open += range.last - range.first + 1;
    }
    if (open != map->open_shards() || map->Find(ShardMap::kMaxShard + 1) != nullptr) std::abort();
  }
  if (const auto weights = ParseWeights(text); weights.ok()) {
    const auto again = ParseWeights(ToJson(*weights));
    if (!again.ok() || *again != *weights) std::abort();
    // Only the range that is changed differs.
    const ShardWeight change{.first = 3, .last = 7, .weight = 5};
    const auto with = ParseWeights(ToJson(WithWeight(*weights, change)));
    if (!with.ok()) std::abort();
  }
  if (const auto host = Host::Parse(text); host.ok()) {
    const auto again = Host::Parse(host->ToString());
    if (!again.ok() || *again != *host) std::abort();
  }
  return 0;
}
