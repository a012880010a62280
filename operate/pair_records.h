#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "shardops/maps.h"

namespace kvstore::operate {

/// The last promotion that `kv operate` has begun in a pair.
struct PairPromotion {
  Host from;               ///< The master that was dead.
  Host to;                 ///< Its slave.
  uint64_t begun_ms = 0;   ///< Since 1970, by the clock of ZooKeeper's servers.
  uint64_t fenced_ms = 0;  ///< When the program that fences hosts has fenced the master; 0: it has not.
  bool done = false;       ///< Whether the slave takes writes. If not, the leader goes on with it.
};

/// Whether `kv operate` may act on a pair of hosts, whichever of them is the master, and what it has done.
struct PairRecord {
  bool on = false;        ///< Whether it may act by itself. Off until somebody switches it on.
  std::string by;         ///< The person or process that switched it last.
  uint64_t since_ms = 0;  ///< When.
  std::optional<PairPromotion> promotion;
  int32_t version = -1;  ///< The version of the record's node; -1: there is no node.
};

/// The records of all pairs, ROOT/operate/pairs/HOST,HOST in ZooKeeper. Thread-safe.
///
/// Errors: UNAVAILABLE if ZooKeeper cannot be reached; DATA_LOSS names a record that cannot be read.
class PairRecords {
 public:
  /// zookeeper  Must outlive this.
  PairRecords(ZooKeeper& zookeeper, const std::string& root)
      : zookeeper_(zookeeper), folder_(root + "/operate/pairs") {}

  /// Returns the record of a pair; one that is off if there is none.
  absl::StatusOr<PairRecord> Load(const shardops::Pair& pair);
  /// Returns all records, by the name of the pair; in the place of one that cannot be read, why.
  absl::StatusOr<std::map<std::string, absl::StatusOr<PairRecord>>> LoadAll();
  /// Replaces the record. FAILED_PRECONDITION if it, or what `condition` checks, has changed since it was
  /// loaded.
  absl::Status Save(const shardops::Pair& pair, const PairRecord& record,
                    const std::optional<ZooKeeperStep>& condition = std::nullopt);

  /// The name of a pair, "HOST,HOST": the same when its hosts have changed their roles.
  static std::string NameOf(const shardops::Pair& pair);

 private:
  ZooKeeper& zookeeper_;
  const std::string folder_;
};

}  // namespace kvstore::operate
