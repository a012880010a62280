#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "coordination/zookeeper.h"
#include "shardmap/shard_map.h"

/// Where a fleet keeps what: in ZooKeeper, below its root, and as a copy beside each process.
namespace kvstore {

/// "ROOT/shards/id" or "ROOT/shards/mod".
std::string MapPath(const std::string& root, bool mod);
/// "FOLDER/shards-id.json" or "FOLDER/shards-mod.json": the last good map, as a process that watches it keeps
/// it in its data directory.
std::filesystem::path MapCopy(const std::filesystem::path& folder, bool mod);
/// "ROOT/hosts/HOST": what is known of a host.
std::string HostPath(const std::string& root, const Host& host);

/// The hosts of which something is known, also such as are in no map any more; none if ZooKeeper cannot be
/// asked. Thread-safe.
std::vector<Host> RememberedHosts(ZooKeeper& zookeeper, const std::string& root);

}  // namespace kvstore
