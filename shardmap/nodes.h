#pragma once

#include <filesystem>
#include <string>

#include "kvstore_api/shard_space.h"
#include "shardmap/shard_map.h"

/// The places where a fleet stores things: nodes of ZooKeeper below the fleet's root, and files in the data
/// directory of each process.
namespace kvstore {

/// "ROOT/shards/id" or "ROOT/shards/mod".
std::string MapPath(const std::string& root, ShardSpace space);
/// "ROOT/shards/weights": how much each range of shards gets of what is new (shardmap/weights.h).
std::string WeightsPath(const std::string& root);
/// "FOLDER/shards-id.json" or "FOLDER/shards-mod.json": the copy of the last good map that a process saves in
/// its data directory, to start with while ZooKeeper is down.
std::filesystem::path MapCopy(const std::filesystem::path& folder, ShardSpace space);
/// "ROOT/hosts": has a node for each host with a note (shardops/notes.h).
std::string HostsPath(const std::string& root);
/// "ROOT/hosts/HOST": the note about a host.
std::string HostPath(const std::string& root, const Host& host);

}  // namespace kvstore
