#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore {

/// The shard maps of a fleet, for its operators: `kv shards get`, `diff`, `history`. Thread-safe.
class ShardMaps {
 public:
  /// A map that was in force.
  struct Kept {
    std::string name;
    uint64_t at_ms = 0;
    std::string who;
    std::optional<std::string> map;  ///< None if what is kept there cannot be read.
  };

  virtual ~ShardMaps() = default;

  // UNAVAILABLE if the maps cannot be read, UNIMPLEMENTED if there is no place for them.
  //
  // mod  The map of mod shards, not of ID shards.

  /// Returns the map in force as it is stored, whether it is a valid one or not. NOT_FOUND if there is none.
  [[nodiscard]] virtual absl::StatusOr<std::string> GetShardMap(bool mod) = 0;
  /// Returns the last maps that were in force, the newest first.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Kept>> ListShardMaps(bool mod) = 0;
};

}  // namespace kvstore
