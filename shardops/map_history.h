#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
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

/// Makes room for the maps that come: keeps what is in force if nobody has, and removes the oldest.
absl::Status PrepareHistory(ZooKeeper& zookeeper, const std::string& root);

/// The step of a transaction that puts a map in force: keeps it. None if the map is too long to be in a
/// transaction twice.
std::optional<ZooKeeperStep> KeepStep(const std::string& root, bool mod, const std::string& text);

/// The maps that were in force, the newest first.
absl::StatusOr<std::vector<KeptMap>> ReadHistory(ZooKeeper& zookeeper, const std::string& root, bool mod);

}  // namespace kvstore::shardops
