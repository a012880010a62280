#pragma once

#include <functional>
#include <memory>
#include <string>

#include "catalog/zookeeper_ledger.h"
#include "catalog/zookeeper_table_records.h"
#include "coordination/zookeeper.h"
#include "shardops/host.h"

namespace kvstore::shardops {

/// The context that every operation on the fleet needs: the session with ZooKeeper, the operator's logins,
/// and the ledger. Threads may share one that none of them changes.
struct FleetOperator {
  ZooKeeper& zookeeper;  ///< Must outlive this.
  /// The node below which the fleet keeps its shard maps, notes about hosts, moves and operations.
  std::string root = "/kvstore";
  Access access;
  /// Is called with a line of text for the operator about each step of an operation, from the thread that
  /// runs the operation.
  std::function<void(const std::string&)> report = [](const std::string&) {};
  /// In whose name operations are begun and maps put in force; empty: this process.
  std::string who;
  /// Excludes operations that would conflict, of other operators and of the processes of the fleet's stores.
  std::shared_ptr<ZooKeeperLedger> ledger = std::make_shared<ZooKeeperLedger>(zookeeper, root, who);

  /// Which tables of the fleet's datasets were made on first use.
  ZooKeeperTableRecords Tables() const { return {{std::shared_ptr<void>(), &zookeeper}, root}; }
};

}  // namespace kvstore::shardops
