#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/zookeeper_ledger.h"
#include "shardmap/shard_map.h"

/// The shard maps that were in force, for the day when one of them is wrong: ROOT/history/id/NAME and
/// ROOT/history/mod/NAME, the newest kKeptMaps of each.
namespace kvstore::shardops {

constexpr size_t kKeptMaps = 50;

/// A map that was put in force.
struct KeptMap {
  std::string name;    ///< Of its node; in the order of time.
  uint64_t at_ms = 0;  ///< When, by the clock of who did it.
  std::string who;     ///< "ann@ops1, process 4711"
  ShardMap map;
};

/// Makes room for the maps that come: keeps what is in force if nobody has, and removes the oldest. What is
/// put in force does not depend on it: who cannot keep maps may change them.
absl::Status PrepareHistory(ZooKeeper& zookeeper, const std::string& root);

/// Puts maps in force as long as an operation is held, all steps or none, and keeps those that are set. One
/// that cannot be kept (PrepareHistory was not called, another user made the history, it is longer than 300
/// KiB) is put in force all the same.
///
/// FAILED_PRECONDITION if a node is not at its step's version any more, ABORTED if the operation is not held;
/// UNAVAILABLE: it may or may not have happened.
absl::Status PutInForce(ZooKeeperLedger& ledger, const Held& held, const std::string& root,
                        std::vector<ZooKeeperStep> steps);

/// The maps that were in force, the newest first.
absl::StatusOr<std::vector<KeptMap>> ReadHistory(ZooKeeper& zookeeper, const std::string& root, bool mod);

}  // namespace kvstore::shardops
