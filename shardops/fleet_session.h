#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/types.h"
#include "shardops/fleet_operator.h"
#include "shardops/open.h"

namespace kvstore::shardops {

/// Where a fleet is, and by which logins it is operated: what a configuration says of it. Threads may share
/// one that none of them changes.
struct FleetOptions {
  ZooKeeperOptions zookeeper;
  std::string root;  ///< The node below which the fleet keeps its maps.
  /// Whether the configuration names an operator's login, so that hosts can be asked.
  bool has_operator = false;
  /// The logins; an error that says what the configuration lacks.
  absl::StatusOr<Access> access = absl::FailedPreconditionError("no operator's login was given");
  /// The data directory, which has copies of the maps for when ZooKeeper cannot be reached; empty: none.
  std::filesystem::path data;
  /// Opens the catalog, for one thread: returns what reads the datasets that are on the fleet.
  std::function<ReadDatasets()> open_catalog;
  /// Makes the databases of all open shards, and the tables of all datasets in them. Tells the number of
  /// shards done, and of all; and, for each reason, how many shards or tables were left alone. ignore_empty:
  /// also shards of which another host has empty databases, in which no dataset has anything.
  std::function<absl::Status(const Progress& progress, std::map<std::string, uint64_t>* left_alone,
                             bool ignore_empty)>
      init;
};

/// A session with the ZooKeeper of a fleet, and the operator's access to its hosts, for one operation.
class FleetSession {
 public:
  /// Returns at once, whether or not ZooKeeper can be reached.
  ///
  /// options  Without `access`, nothing may be asked of hosts.
  /// who      As FleetOperator::who.
  /// report   As FleetOperator::report; null: nobody listens.
  FleetSession(const FleetOptions& options, const std::string& who,
               std::function<void(const std::string&)> report);
  FleetSession(const FleetSession&) = delete;
  FleetSession& operator=(const FleetSession&) = delete;

  FleetOperator& operator*() { return fleet_; }

 private:
  ZooKeeper zookeeper_;
  FleetOperator fleet_;
};

}  // namespace kvstore::shardops
