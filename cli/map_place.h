#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_api/shard_maps.h"
#include "cli/command.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/shard_space.h"
#include "shardmap/diff.h"
#include "shardmap/nodes.h"
#include "shardmap/shard_map.h"

/// Code that the commands on the shard maps share.
namespace kvstore::cli {

/// Where the maps are, and which of the two (ID or mod shards) a command works on.
struct MapPlace {
  ZooKeeperOptions zookeeper;
  std::string root;
  ShardSpace space = ShardSpace::kId;

  /// Adds all options except --auth.
  void AddTo(CLI::App& command);
  void AddServers(CLI::App& command);
  void AddAuth(CLI::App& command);
  void AddKind(CLI::App& command);
  /// Returns whether the command, to which the options were added, is carried out by the server that was
  /// named. Throws as WrongUsage if both a server and a place were.
  bool IsOfServer(const CLI::App& command, const Globals& globals) const;
  /// Takes options that were not given from the configuration. Throws if they are not there either.
  void Complete(const Globals& globals);
  std::string path() const { return MapPath(root, space); }
};

/// Returns whether a command is carried out by a server. A server of the environment carries out only what
/// has no other place, so that all commands work where kv shards set writes.
///
/// has_place  Whether the command, or the configuration, says where the fleet is.
bool UsesServer(const CLI::App& command, bool has_place, const Globals& globals);
/// Opens the maps that a command only reads: of the server that was named, or in ZooKeeper. Throws Failure,
/// or as WrongUsage if both were named.
///
/// command  The command to which MapPlace has added its options.
std::unique_ptr<ShardMaps> OpenMaps(const CLI::App& command, MapPlace& place, const Globals& globals);
/// Reads the map in force. Throws Failure, with how to begin if there is no map yet.
std::string GetMap(ShardMaps& maps, const MapPlace& place);
/// Returns the text of a file, "-" for standard input. Throws Failure.
std::string ReadText(const std::string& file);
/// Parses a map. Throws Failure if the text is not a valid map, or not a valid map of its space.
ShardMap ReadMap(const std::string& text, ShardSpace space);
void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals);

}  // namespace kvstore::cli
