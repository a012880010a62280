#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/mysql/options.h"
#include "shardmap/shard_map.h"

namespace kvstore::mysql {

/// Open shards by weight, to choose one for a new object. An immutable value.
class Spread {
 public:
  Spread(const ShardMap& map, std::span<const ShardWeight> weights);
  /// The shard at `random`, any number: over all numbers each comes up in proportion to its weight. Must not
  /// be called if none has a weight.
  uint32_t Choose(uint64_t random) const;
  bool empty() const { return total_ == 0; }

 private:
  struct Segment {
    uint64_t end;  // of the weights added up
    uint32_t last;
    uint32_t weight;
  };
  std::vector<Segment> segments_;
  uint64_t total_ = 0;
};

}  // namespace kvstore::mysql
