#pragma once

#include <cstdint>
#include <string_view>

namespace kvstore {

/// The two spaces of shards of a fleet of MySQL servers. Each space has a shard map of its own, and numbers
/// its shards from 0 on.
enum class ShardSpace : uint8_t {
  kId,   ///< All ID shards, which have the objects and mappings: databases db00000 and so on.
  kMod,  ///< All mod shards, which have the rows: databases mod00000 and so on.
};

/// Returns "db" or "mod": how the names of the space's databases begin, and how messages, moves and backups
/// name the space. Stored: never change it.
constexpr std::string_view ShardSpaceName(ShardSpace space) {
  return space == ShardSpace::kMod ? "mod" : "db";
}

}  // namespace kvstore
