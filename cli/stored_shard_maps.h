#pragma once

#include <memory>
#include <string>

#include "backend_api/shard_maps.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/open.h"

namespace kvstore::cli {

/// Returns the shard maps below a node of ZooKeeper. It connects for each call, since calls are rare.
std::unique_ptr<ShardMaps> OpenStoredShardMaps(const ZooKeeperOptions& zookeeper, const std::string& root);
/// Returns the shard maps in the ZooKeeper of a store's fleet, or of its catalog where it has no fleet; null
/// if there is none.
std::unique_ptr<ShardMaps> OpenStoredShardMaps(const OpenOptions& store);

}  // namespace kvstore::cli
