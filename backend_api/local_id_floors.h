#pragma once

#include <cstdint>
#include <map>

namespace kvstore {

/// From where on the local IDs of a dataset of objects may be assigned.
struct LocalIdFloors {
  std::map<uint32_t, uint64_t> shards;  ///< The next local ID of each shard that has had an object.
  /// The same of all other shards. It is above 1 after a repair of an embedded store, which may have left out
  /// all that was ever created on a shard.
  uint64_t others = 1;

  bool operator==(const LocalIdFloors&) const = default;
};

}  // namespace kvstore
