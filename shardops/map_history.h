#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/zookeeper_ledger.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/shard_map.h"

/// The history of the shard maps that were in force, from which `kv shards undo` takes one back: a node for
/// each map below ROOT/history/id and ROOT/history/mod, the newest kKeptMaps of each.
namespace kvstore::shardops {

constexpr size_t kKeptMaps = 50;

/// A map that was put in force.
struct KeptMap {
  std::string name;    ///< The name of its node; names sort by time.
  uint64_t at_ms = 0;  ///< When it was put in force, by the clock of whoever did.
  /// "ann@ops1, process 4711". If nobody knows who put it in force, it says so, and who saved it here.
  std::string who;
  /// None if its node does not have a map that this program has saved; then the other fields may be empty.
  std::optional<ShardMap> map;
};

/// Prepares the history for maps that are about to be put in force: saves the map that is in force now if the
/// history does not end with it, because other programs, or versions before this, put it there; and removes
/// the oldest maps. Callers may ignore an error: a map must be changeable also by a user who may not write
/// the history.
absl::Status PrepareHistory(ZooKeeper& zookeeper, const std::string& root);

/// Puts the first map in force, and saves it in the history. ALREADY_EXISTS if there is a map. If the history
/// cannot be written, the map is put in force without being saved.
///
/// who  As KeptMap::who.
absl::Status CreateMap(ZooKeeper& zookeeper, const std::string& root, ShardSpace space,
                       const std::string& map, const std::string& who);

/// Changes the maps in one transaction, as long as the operation `held` is held, and saves each map that a
/// step sets in the history. If the history cannot be written (PrepareHistory was not called, or another user
/// made it), or all maps of the transaction, each twice, are longer than ZooKeeper::kMaxNodeBytes, the map is
/// put in force without being saved.
///
/// FAILED_PRECONDITION if a node does not have its step's version any more; ABORTED if the operation is not
/// held any more; UNAVAILABLE if the outcome is unknown.
absl::Status PutInForce(ZooKeeperLedger& ledger, const Held& held, const std::string& root,
                        std::vector<ZooKeeperStep> steps);

/// Returns the maps that were in force, the newest first, also those that cannot be read.
absl::StatusOr<std::vector<KeptMap>> ReadHistory(ZooKeeper& zookeeper, const std::string& root,
                                                 ShardSpace space);

}  // namespace kvstore::shardops
