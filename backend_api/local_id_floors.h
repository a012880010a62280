#pragma once

#include <cstdint>
#include <map>

namespace kvstore {

/// The lowest local IDs that may be assigned next in a dataset of objects.
struct LocalIdFloors {
  std::map<uint32_t, uint64_t> shards;  ///< The next local ID of each shard that has had an object.
  /// The next local ID of every other shard. It is above 1 after a repair of an embedded store: the repair
  /// may have left out all that was ever created on a shard.
  uint64_t others = 1;

  bool operator==(const LocalIdFloors&) const = default;
};

}  // namespace kvstore
