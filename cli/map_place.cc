#include "cli/map_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "assembly/backend_config.h"
#include "cli/escape.h"
#include "cli/shard_arguments.h"
#include "cli/stored_shard_maps.h"
#include "client/client.h"
#include "shardops/answers.h"
#include "shardops/map_edit.h"

namespace kvstore::cli {
namespace {

/// Returns whether an option was given on the command line; in the environment does not count.
bool IsOnCommandLine(const CLI::App& app, const std::string& option) {
  const auto& given = app.parse_order();
  const CLI::Option* const known = app.get_option_no_throw(option);
  return known != nullptr && std::find(given.begin(), given.end(), known) != given.end();
}

const CLI::App& ProgramOf(const CLI::App& command) {
  return command.get_parent() == nullptr ? command : ProgramOf(*command.get_parent());
}

}  // namespace

void MapPlace::AddTo(CLI::App& command) {
  AddKind(command);
  AddServers(command);
}

void MapPlace::AddServers(CLI::App& command) {
  command.add_option("--zookeeper", zookeeper.servers, "Servers of ZooKeeper: host:port,host:port")
      ->envname("KV_ZOOKEEPER")
      ->type_name("SERVERS");
  command.add_option("--root", root, "Node of ZooKeeper below which all nodes are [/kvstore]");
}

void MapPlace::Complete(const Globals& globals) {
  if (zookeeper.servers.empty() && !globals.config.empty()) {
    const OpenOptions options = globals.StoreOptions();
    if (const MySqlFleetOptions* fleet = FindFleet(options); fleet != nullptr) {
      const std::string auth = std::exchange(zookeeper, fleet->zookeeper).auth;
      if (!auth.empty()) zookeeper.auth = auth;
      if (root.empty()) root = fleet->root;
    }
  }
  if (zookeeper.servers.empty()) {
    WrongUsage(
        "zookeeper: name its servers with --zookeeper host:port,... (or KV_ZOOKEEPER), or the fleet's "
        "configuration with --config (or KV_CONFIG)");
  }
  if (root.empty()) root = "/kvstore";
}

void MapPlace::AddAuth(CLI::App& command) {
  command
      .add_option("--auth", zookeeper.auth,
                  "user:password; only this user can write nodes that the command creates")
      ->envname("KV_ZOOKEEPER_AUTH");
}

void MapPlace::AddKind(CLI::App& command) {
  AddModFlag(command, space, "Use the map of mod shards, not of ID shards");
}

bool UsesServer(const CLI::App& command, bool has_place, const Globals& globals) {
  return !globals.server.empty() && (!has_place || IsOnCommandLine(ProgramOf(command), "--server"));
}

bool MapPlace::IsOfServer(const CLI::App& command, const Globals& globals) const {
  for (const char* option : {"--zookeeper", "--root", "--auth"}) {
    if (IsOnCommandLine(ProgramOf(command), "--server") && IsOnCommandLine(command, option))
      WrongUsage(fmt::format("--server: not together with {}; a server knows where its maps are", option));
  }
  return UsesServer(command, !zookeeper.servers.empty() || !globals.config.empty(), globals);
}

std::unique_ptr<ShardMaps> OpenMaps(const CLI::App& command, MapPlace& place, const Globals& globals) {
  if (place.IsOfServer(command, globals)) {
    place.root.clear();
    return OrFail(client::Client::Open(globals.server, globals.ServerConnection()));
  }
  place.Complete(globals);
  return OpenStoredShardMaps(place.zookeeper, place.root);
}

std::string GetMap(ShardMaps& maps, const MapPlace& place) {
  auto map = maps.GetShardMap(place.space);
  if (absl::IsNotFound(map.status())) {
    throw Failure{
        shardops::NoMapError(place.root.empty() ? "the server's fleet" : place.path(), place.space)};
  }
  return OrFail(std::move(map));
}

std::string ReadText(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Failure{absl::NotFoundError(fmt::format("cannot open {}", file))};
  return {std::istreambuf_iterator<char>(in), {}};
}

ShardMap ReadMap(const std::string& text, ShardSpace space) {
  return OrFail(shardops::ParseMap(text, space));
}

void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals) {
  if (globals.json) {
    PrintJson({{"ok", true}, {"changes", shardops::ToJson(changes)}});
    return;
  }
  for (const ShardChange& change : changes) Print("{}\n", change.ToString());
  if (changes.empty()) Print("no change\n");
}

}  // namespace kvstore::cli
