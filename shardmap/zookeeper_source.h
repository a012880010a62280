#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kvstore_api/zookeeper_options.h"
#include "shardmap/map_source.h"

namespace kvstore {

/// Returns a source for each of these nodes of ZooKeeper. They share a session, as ZooKeeper's servers have
/// one for each client. A node is watched. A read asks for the version of the node first, some hundred bytes,
/// and for the data only if that has changed. The poll interval is half a minute, in case a watch is lost.
/// While ZooKeeper cannot be reached, it is tried only while a read waits for it.
std::vector<std::unique_ptr<MapSource>> OpenZooKeeperSources(const ZooKeeperOptions& options,
                                                             const std::vector<std::string>& paths);

/// Returns a source for one node.
std::unique_ptr<MapSource> OpenZooKeeperSource(const ZooKeeperOptions& options, const std::string& path);

}  // namespace kvstore
