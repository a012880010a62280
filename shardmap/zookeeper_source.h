#pragma once

#include <memory>
#include <string>

#include "kvstore_api/zookeeper_options.h"
#include "shardmap/map_source.h"

namespace kvstore {

/// Returns a source that is a node of ZooKeeper. The node is watched; its poll interval is half a minute, in
/// case a watch is lost.
std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path);

}  // namespace kvstore
