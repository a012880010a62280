#include "backends/mysql/spread.h"

#include <algorithm>

namespace kvstore::mysql {

Spread::Spread(const ShardMap& map, std::span<const ShardWeight> weights) {
  for (const ShardRange& range : map.ranges()) {
    for (uint32_t shard = range.first; shard <= range.last; ++shard) {
      // The first that names the shard counts.
      const auto found = std::find_if(weights.begin(), weights.end(), [shard](const ShardWeight& weight) {
        return weight.first <= shard && shard <= weight.last;
      });
      const uint32_t weight = found == weights.end() ? 1 : found->weight;
      if (weight == 0) continue;
      total_ += weight;
      if (!segments_.empty() && segments_.back().last + 1 == shard && segments_.back().weight == weight) {
        segments_.back().last = shard;
        segments_.back().end = total_;
      } else {
        segments_.push_back({total_, shard, weight});
      }
    }
  }
}

uint32_t Spread::Choose(uint64_t random) const {
  const uint64_t at = random % total_;
  const auto segment = std::upper_bound(segments_.begin(), segments_.end(), at,
                                        [](uint64_t wanted, const Segment& one) { return wanted < one.end; });
  return segment->last - static_cast<uint32_t>((segment->end - 1 - at) / segment->weight);
}

}  // namespace kvstore::mysql
