#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/zookeeper_ledger.h"
#include "shardops/host.h"
#include "shardops/maps.h"

namespace kvstore::shardops {

/// Where the fleet's maps are, who operates it, and who hears what is done.
struct Fleet {
  ZooKeeper& zookeeper;
  std::string root = "/kvstore";
  Access access;
  std::function<void(const std::string&)> tell = [](const std::string&) {};
  /// Where operators, and the processes of the fleet's stores, begin what they do.
  std::shared_ptr<ZooKeeperLedger> ledger = std::make_shared<ZooKeeperLedger>(zookeeper, root);
};

struct PromoteOptions {
  /// The master is gone, and its slave takes over with what it has. Refused while the master answers.
  bool emergency = false;
  /// How many acknowledged transactions may be lost; none: nothing may be, nor be unknown.
  /// Given, in an emergency, up to half of the shards' databases may be missing at the slave too.
  std::optional<uint64_t> accept_loss;
  /// How long, in ms, the slave may take to apply what it lacks, with clients waiting (planned), or not
  /// (emergency).
  std::chrono::milliseconds catch_up{5'000};
  /// Says what would be done.
  bool dry_run = false;
};

struct Promotion {
  Pair before;
  Pair after;
  /// How long clients could not write; planned ones only.
  uint64_t write_pause_ms = 0;
  /// Whether the old master follows the new one.
  bool follows = false;
};

/// Makes a slave the master of its shards. Each step leaves at most one host of the pair that takes writes,
/// and says so itself; the map follows. If it was stopped at any step, run it again: it goes on from what the
/// hosts and the map say. Run for the old master instead, before the map has changed, it goes back.
///
/// Planned    The master takes no more writes, its clients are cut off, the slave applies the rest; the map
///            names it, and it takes writes. The old master follows it. Clients wait.
/// Emergency  The same without a master. Its slave must have all that was acknowledged: the master, when
///            last seen (Remember), answered no commit without its slave, and that was this one and no other,
///            which is connected by the same thread since, and has what it had then. What the master's log
///            has beyond that, nobody was told of. Else FAILED_PRECONDITION says what is missing or not
///            known, unless accept_loss covers it.
///
/// FAILED_PRECONDITION also if another operator is at work on one of the hosts, `host` is in no map, follows
/// another master, is a copy that was never ended (ReplaceSlave), or lacks what a master needs; UNAVAILABLE
/// if a host or ZooKeeper cannot be reached. Nothing has changed then, or what has was put back; unless the
/// message says that no host takes writes, and how to go on.
///
/// In the ledger it has both hosts. An emergency is not refused by what others have there: their claims are
/// taken away, so that they cannot publish a map any more; shards that move go on to do so.
absl::StatusOr<Promotion> Promote(Fleet& fleet, const Host& host, const PromoteOptions& options);

/// Shuts a host: it takes no writes, and its clients are cut off. How many there were.
absl::StatusOr<uint64_t> Fence(Fleet& fleet, const Host& host);

}  // namespace kvstore::shardops
