#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/open.h"
#include "shardmap/shard_map.h"
#include "shardops/move_record.h"
#include "shardops/promote.h"

namespace kvstore::cli {

/// The fleet of a configuration, with an operator's access to its hosts. The constructor throws Failure if
/// the configuration lacks something for that.
class Operated {
 public:
  explicit Operated(const Globals& globals);
  shardops::FleetOperator& operator*() { return *fleet_; }
  const OpenOptions& options() const { return options_; }

 private:
  const MySqlFleetOptions& Mysql() const;

  const OpenOptions options_;
  ZooKeeper zookeeper_;
  std::unique_ptr<shardops::FleetOperator> fleet_;
};

/// Parses "0-511". Throws as WrongUsage.
shardops::MoveRange ParseRange(const std::string& text, bool mod);
/// Parses a host as it is written in shard maps. Throws as WrongUsage.
Host ParseHost(const std::string& text);

}  // namespace kvstore::cli
