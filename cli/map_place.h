#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/nodes.h"
#include "shardmap/shard_map.h"

/// What the commands on the shard maps share.
namespace kvstore::cli {

/// Where the maps are, and which of the two is meant.
struct MapPlace {
  ZooKeeperOptions zookeeper;
  std::string root;
  bool mod = false;

  /// All options but --auth.
  void AddTo(CLI::App& command);
  void AddServers(CLI::App& command);
  void AddAuth(CLI::App& command);
  void AddKind(CLI::App& command);
  /// What is not said is as the configuration has it. Throws Failure.
  void Complete(const Globals& globals);
  std::string path() const { return MapPath(root, mod); }
};

/// The text of a file, "-" for standard input. Throws Failure.
std::string ReadText(const std::string& file);
/// Throws Failure if it is no map, or none of mod shards where it should be.
ShardMap ReadMap(const std::string& text, bool mod);
void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals);

}  // namespace kvstore::cli
