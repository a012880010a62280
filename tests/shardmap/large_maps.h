#pragma once

#include <cstdint>

#include "shardmap/shard_map.h"

namespace kvstore::testing {

/// Returns a map of 65,536 ranges of one shard each, whose pairs of `hosts` hosts are all different and in no
/// order: nothing in it can be packed well.
///
/// seed  Maps of different seeds have different pairs.
ShardMap FullSizeMap(uint32_t hosts = 1'000, uint32_t seed = 0);

}  // namespace kvstore::testing
