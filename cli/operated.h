#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "coordination/zookeeper.h"
#include "registry/open.h"
#include "shardmap/shard_map.h"
#include "shardops/move_record.h"
#include "shardops/promote.h"

namespace kvstore::cli {

/// The fleet of a configuration, as its operator has it. Throws Failure where the configuration lacks
/// something.
class Operated {
 public:
  explicit Operated(const Globals& globals);
  shardops::Fleet& operator*() { return *fleet_; }
  const OpenOptions& options() const { return options_; }

 private:
  const MySqlFleet& Mysql() const;

  const OpenOptions options_;
  ZooKeeper zookeeper_;
  std::unique_ptr<shardops::Fleet> fleet_;
};

/// "0-511". Throws Failure.
shardops::MoveRange ParseRange(const std::string& text, bool mod);
/// A host as the shard map has it. Throws Failure.
Host ParseHost(const std::string& text);

}  // namespace kvstore::cli
