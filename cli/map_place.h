#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_api/shard_maps.h"
#include "cli/command.h"
#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/nodes.h"
#include "shardmap/shard_map.h"

/// Code that the commands on the shard maps share.
namespace kvstore::cli {

/// Where the maps are, and which of the two (ID or mod shards) a command works on.
struct MapPlace {
  ZooKeeperOptions zookeeper;
  std::string root;
  bool mod = false;

  /// Adds all options except --auth.
  void AddTo(CLI::App& command);
  void AddServers(CLI::App& command);
  void AddAuth(CLI::App& command);
  void AddKind(CLI::App& command);
  /// Takes options that were not given from the configuration. Throws if they are not there either.
  void Complete(const Globals& globals);
  std::string path() const { return MapPath(root, mod); }
};

/// Reads the map in force. Throws Failure, with how to begin if there is no map yet.
ZooKeeperNode GetMap(ZooKeeper& zookeeper, const MapPlace& place);
/// Adds the options of a command that only reads maps, and may do so through a server.
void AddMapSource(CLI::App& command, MapPlace& place, Globals& globals);
/// Opens the maps that such a command reads: of the server that was named, or in ZooKeeper. Throws Failure,
/// or as WrongUsage if both were named.
///
/// command  The command to which AddMapSource has added its options.
std::unique_ptr<ShardMaps> OpenMaps(const CLI::App& command, MapPlace& place, const Globals& globals);
/// Reads the map in force. Errors as of the other GetMap.
std::string GetMap(ShardMaps& maps, const MapPlace& place);
/// Returns the text of a file, "-" for standard input. Throws Failure.
std::string ReadText(const std::string& file);
/// Parses a map. Throws Failure if the text is not a valid map, or, with `mod`, not a valid map of mod
/// shards.
ShardMap ReadMap(const std::string& text, bool mod);
/// Returns the changes as commands print them under --json.
Json ChangesToJson(const std::vector<ShardChange>& changes);
void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals);

}  // namespace kvstore::cli
