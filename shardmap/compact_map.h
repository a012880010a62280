#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "shardmap/shard_range.h"

/// The packed part of a shard map in its compact form (ShardMap::ToStored): base64 of a zstd frame of
///
///   {"hosts": ["MySQL001A", "MySQL001B:3307"], "masters": [0], "slaves": [1],
///    "gaps": [0, 0], "lengths": [512, 8], "pairs": [0, 1]}
///
/// `masters` and `slaves` have, for each pair of hosts, their places in `hosts`. The other lists have a
/// number for each range, in the order of shards: how many shards before it are not open; how many shards it
/// has; and its pair, 1 for the first one, or 0 for the first pair that no range before has named. So neither
/// a few pairs with many ranges, nor a pair for each range, takes more room than it must.
namespace kvstore {

/// The most bytes that a frame may unpack to; the lists of 65,536 ranges on 1,000 hosts take 0.8 MiB.
inline constexpr size_t kMaxUnpackedMapBytes = size_t{8} << 20;

/// Returns the packed part of these ranges, which ShardMap::Create accepts; empty if it would have more than
/// kMaxUnpackedMapBytes.
std::string PackRanges(std::span<const ShardRange> ranges);

/// Unpacks what PackRanges returns. Memory is bounded whatever the bytes are. INVALID_ARGUMENT says what is
/// wrong; the ranges are still to be checked by ShardMap::Create.
absl::StatusOr<std::vector<ShardRange>> UnpackRanges(std::string_view packed);

}  // namespace kvstore
