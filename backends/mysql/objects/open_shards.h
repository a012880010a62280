#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/mysql/fleet/fleet.h"
#include "kvstore_api/types.h"

/// The shards of IDs that scans of objects and of mappings walk, in ascending order. The shard is the high
/// part of an ID, so that is also the order of the IDs.
namespace kvstore::mysql {

/// A statement of a scan costs at least so much of its ScanBudget: a round trip, however little it finds.
inline constexpr uint64_t kExaminedByStatement = 1024;

/// Returns the first open shard of first..last; nullopt if there is none.
std::optional<uint32_t> FirstOpenShard(const Fleet& fleet, uint32_t first, uint32_t last);

/// Divides all IDs into about `wanted` partitions with equally many open shards; at most one for each shard.
std::vector<Partition> PartitionShards(const Fleet& fleet, size_t wanted);

}  // namespace kvstore::mysql
