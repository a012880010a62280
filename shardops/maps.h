#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/zookeeper_ledger.h"
#include "shardmap/shard_map.h"

namespace kvstore::shardops {

/// A master and its slave, as the maps have them.
struct Pair {
  Host master;
  Host slave;
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

/// One of the two maps, as it is in ZooKeeper.
struct StoredMap {
  std::string path;
  bool mod = false;
  int32_t version = 0;
  ShardMap map;
};

/// The shard maps in ZooKeeper. What changes them does so in one step, and only if nobody else has changed
/// one of them since they were loaded. Externally synchronised.
class Maps {
 public:
  /// NOT_FOUND if there is none; INVALID_ARGUMENT if one does not parse.
  static absl::StatusOr<Maps> Load(ZooKeeper& zookeeper, const std::string& root);

  const std::vector<StoredMap>& all() const { return maps_; }
  /// Without repetitions, in order.
  std::vector<Pair> Pairs() const;
  /// "db 0-511, mod 0-7": the shards of a pair.
  std::string ShardsOf(const Pair& pair) const;

  /// Has another pair in the place of one, in both maps. FAILED_PRECONDITION if somebody has changed them
  /// meanwhile: load them again. ABORTED if the operation that does it is not held any more. UNAVAILABLE: it
  /// may or may not have happened.
  absl::Status Replace(ZooKeeperLedger& ledger, const Held& held, const Pair& before,
                       const Pair& after) const;
  /// Has another pair for some shards of one of the maps. As above; FAILED_PRECONDITION also if they are not
  /// all open.
  absl::Status Give(ZooKeeperLedger& ledger, const Held& held, bool mod, uint32_t first, uint32_t last,
                    const Pair& to) const;
  /// Puts another map in the place of one. As for Replace.
  absl::Status Set(ZooKeeperLedger& ledger, const Held& held, bool mod, const ShardMap& next) const;
  /// The pair of a shard; none if it is not open.
  std::optional<Pair> PairOf(bool mod, uint32_t shard) const;
  /// One of the two; null if there is none.
  const StoredMap* Find(bool mod) const;
  /// As a process of the store keeps them in its data directory (MapCopy); not in ZooKeeper. NOT_FOUND if
  /// there is none.
  static absl::StatusOr<Maps> LoadCopies(const std::filesystem::path& folder);
  /// These, with another map in the place of one: not in ZooKeeper.
  Maps With(bool mod, const ShardMap& next) const;
  /// Hosts that are in more than one pair, as where the two maps disagree; what is wrong, in words.
  std::map<Host, std::string> Disagreements() const;

 private:
  /// The steps set maps, which are kept (map_history.h). The others are as they were: a pair is in both.
  absl::Status Change(ZooKeeperLedger& ledger, const Held& held, std::vector<ZooKeeperStep> steps) const;

  std::string root_;
  std::vector<StoredMap> maps_;
};

}  // namespace kvstore::shardops
