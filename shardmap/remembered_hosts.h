#pragma once

#include <string>
#include <vector>

#include "coordination/zookeeper.h"
#include "shardmap/shard_map.h"

namespace kvstore {

/// Returns all hosts with a note in ZooKeeper, also those that are in no map any more; none if ZooKeeper
/// cannot be reached. Thread-safe.
std::vector<Host> RememberedHosts(ZooKeeper& zookeeper, const std::string& root);

}  // namespace kvstore
