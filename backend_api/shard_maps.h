#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/shard_space.h"

namespace kvstore {

/// The shard maps of a fleet, for its operators: `kv shards get`, `diff`, `history`. Thread-safe.
class ShardMaps {
 public:
  /// A map that was in force.
  struct Kept {
    std::string name;
    uint64_t at_ms = 0;
    std::string who;
    /// In the form in which it is stored, which is the compact one if it is long (ShardMap::ToStored). None
    /// if what is kept there cannot be read.
    std::optional<std::string> map;
  };

  virtual ~ShardMaps() = default;

  // UNAVAILABLE if the maps cannot be read, UNIMPLEMENTED if there is no place for them.
  //
  // space  The space whose map it is.

  /// Returns the map in force, whether it is a valid one or not: as it is stored, but one of the compact form
  /// as the text that people edit. NOT_FOUND if there is none.
  [[nodiscard]] virtual absl::StatusOr<std::string> GetShardMap(ShardSpace space) = 0;
  /// Returns the last maps that were in force, the newest first.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Kept>> ListShardMaps(ShardSpace space) = 0;
};

}  // namespace kvstore
