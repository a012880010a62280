#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/zookeeper_ledger.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/shard_map.h"

namespace kvstore::shardops {

/// A master and its slave, as the maps have them.
struct Pair {
  Host master;
  Host slave;
  bool Has(const Host& host) const { return master == host || slave == host; }
  /// Whether a host is in both.
  bool SharesHost(const Pair& other) const { return Has(other.master) || Has(other.slave); }
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

/// Parses "MASTER,SLAVE". INVALID_ARGUMENT names the option that has it.
absl::StatusOr<Pair> ParsePair(std::string_view option, std::string_view text);

/// How often a command tries again because somebody else has changed a map.
inline constexpr int kMaxMapConflicts = 10;

/// One of the two maps, as it is stored in ZooKeeper.
struct StoredMap {
  std::string path;
  ShardSpace space = ShardSpace::kId;
  int32_t version = 0;
  ShardMap map;
};

/// The two shard maps, as they were when they were loaded from ZooKeeper. Each change of them is one
/// transaction, which fails if anybody has changed one of the maps since then. Externally synchronised.
class Maps {
 public:
  /// NOT_FOUND if there is no map; INVALID_ARGUMENT if one does not parse.
  static absl::StatusOr<Maps> Load(ZooKeeper& zookeeper, const std::string& root);
  /// Loads the maps that can be read, if any: one that does not exist, or does not parse, is left out.
  static absl::StatusOr<Maps> LoadReadable(ZooKeeper& zookeeper, const std::string& root);
  /// Loads the copies that a process of the store saves in its data directory (MapCopy). They cannot be
  /// changed through this. NOT_FOUND if there is none.
  static absl::StatusOr<Maps> LoadCopies(const std::filesystem::path& folder);

  const std::vector<StoredMap>& all() const { return maps_; }
  /// Returns one of the two maps; null if it does not exist.
  const StoredMap* Find(ShardSpace space) const;
  /// Returns the pairs of both maps, sorted and without repetitions.
  std::vector<Pair> Pairs() const;
  /// Returns the pair of a shard; nullopt if the shard is not open.
  std::optional<Pair> PairOf(ShardSpace space, uint32_t shard) const;
  /// Returns the shards of a pair: "db 0-511, mod 0-7".
  std::string ShardsOf(const Pair& pair) const;
  /// Returns what is wrong with each host that is in more than one pair, in words; a host is, for instance,
  /// where the two maps disagree.
  std::map<Host, std::string> Disagreements() const;

  /// Replaces a pair by another one in both maps. FAILED_PRECONDITION if somebody has changed the maps
  /// meanwhile: load them again. ABORTED if the operation `held` is not held any more. UNAVAILABLE if the
  /// outcome is unknown.
  absl::Status Replace(ZooKeeperLedger& ledger, const Held& held, const Pair& before,
                       const Pair& after) const;
  /// Assigns the shards first..last of one of the maps to another pair. Errors as of Replace;
  /// FAILED_PRECONDITION also if the shards are not all open.
  absl::Status Assign(ZooKeeperLedger& ledger, const Held& held, ShardSpace space, uint32_t first,
                      uint32_t last, const Pair& to) const;
  /// Replaces one of the maps. Errors as of Replace; FAILED_PRECONDITION also if there is no such map yet.
  absl::Status Set(ZooKeeperLedger& ledger, const Held& held, ShardSpace space, const ShardMap& next) const;
  /// Replaces one of the maps, also one that could not be read, by a text in the form of ShardMap::Parse. The
  /// other map must be as it was loaded. Errors as of Replace.
  ///
  /// version  the version of the map's node that is replaced.
  absl::Status SetText(ZooKeeperLedger& ledger, const Held& held, ShardSpace space, const std::string& text,
                       int32_t version) const;
  /// Returns these maps with another one in the place of one of them. Nothing is stored.
  Maps With(ShardSpace space, const ShardMap& next) const;

 private:
  /// skip_damaged  Whether a map that does not parse is left out; else it is an error.
  static absl::StatusOr<Maps> LoadNodes(ZooKeeper& zookeeper, const std::string& root, bool skip_damaged);
  /// Runs steps that set maps, and saves those in the history (map_history.h). Maps that no step sets must
  /// still have the version that was loaded, since a pair is in both.
  absl::Status Change(ZooKeeperLedger& ledger, const Held& held, std::vector<ZooKeeperStep> steps) const;

  std::string root_;
  std::vector<StoredMap> maps_;
};

}  // namespace kvstore::shardops
