#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/diff.h"
#include "shardmap/shard_map.h"
#include "shardops/fleet_operator.h"

/// Edits of the shard maps by hand: `kv shards set` and `kv shards undo`.
namespace kvstore::shardops {

/// Parses a map. INVALID_ARGUMENT if the text is not a valid map, or not a valid map of its space.
absl::StatusOr<ShardMap> ParseMap(std::string_view text, ShardSpace space);

/// Returns NOT_FOUND, which says how to make the first map.
///
/// where  The node of the map, or what else has it.
absl::Status NoMapError(std::string_view where, ShardSpace space);

struct MapEdit {
  ShardSpace space = ShardSpace::kId;
  std::string text;  ///< The map that is to be in force, as ParseMap reads it.
  /// Asks no host, and compares no maps.
  bool unchecked = false;
  /// Whether FleetOperator::access is an operator's, so that hosts can be asked.
  bool can_ask = false;
  /// Checks all, reports what would change, and changes nothing.
  bool dry_run = false;
  /// EditedMap::seen of a dry run: the map must be as it was then.
  std::optional<std::string> seen;
};

struct EditedMap {
  /// The differences from the map that was in force; none if there was none, or it was damaged.
  std::vector<ShardChange> changes;
  std::string path;          ///< The node of the map.
  bool first = false;        ///< There was no map before.
  uint32_t open_shards = 0;  ///< Shards that are open in the new map.
  bool asked = false;        ///< The hosts were asked about the map.
  /// Shards may have got other hosts, or their first ones, so that the hosts should be asked.
  bool should_ask = false;
  std::string seen;  ///< Names the state of the map that was replaced.
};

/// Puts a map in force, if nobody else changes the map meanwhile, and saves it in the history. Reports each
/// change before anything is checked.
///
/// FAILED_PRECONDITION, and nothing is written, if the hosts or the other map contradict the map
/// (FindMapProblems); if they would have to be asked and cannot be; if the map is not as it was `seen`, or
/// changes meanwhile; or if the number of mod shards would change. INVALID_ARGUMENT as of ParseMap.
absl::StatusOr<EditedMap> EditMap(FleetOperator& fleet, const MapEdit& edit);

/// Returns the map to go back to, as a text: the kept one named `to`, or, if `to` is empty, the newest that
/// is not in force. NOT_FOUND if there is none, or no map is in force; DATA_LOSS if it cannot be read.
absl::StatusOr<std::string> EarlierMap(FleetOperator& fleet, ShardSpace space, const std::string& to);

/// Returns DATA_LOSS for a map of the history that cannot be read.
///
/// name  KeptMap::name
absl::Status UnreadableKeptMapError(std::string_view name);

}  // namespace kvstore::shardops
