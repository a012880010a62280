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
#include "cli/stored_shard_maps.h"
#include "client/client.h"
#include "shardmap/mod_shard.h"

namespace kvstore::cli {
namespace {

Json HostsToJson(const std::optional<ShardRange>& range) {
  if (!range) return nullptr;
  return {{"master", range->master.ToString()}, {"slave", range->slave.ToString()}};
}

/// Returns whether an option was given on the command line; in the environment does not count.
bool IsOnCommandLine(const CLI::App& app, const std::string& option) {
  const auto& given = app.parse_order();
  return std::find(given.begin(), given.end(), app.get_option(option)) != given.end();
}

/// Returns the error of a map that does not exist yet, which says how to make it.
Failure NoMap(const MapPlace& place) {
  return Failure{absl::NotFoundError(fmt::format(
      "{}: there is no map yet. Write one to a file; kv shards set {}FILE makes it the map, then kv shards "
      "init makes the databases of its shards (docs/mysql.md, 'From nothing to a fleet')",
      place.root.empty() ? "the server's fleet" : place.path(), place.mod ? "--mod " : ""))};
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
  command.add_flag("--mod", mod, "Use the map of mod shards, not of ID shards");
}

ZooKeeperNode GetMap(ZooKeeper& zookeeper, const MapPlace& place) {
  auto node = zookeeper.Get(place.path(), /*watch=*/false);
  if (absl::IsNotFound(node.status())) throw NoMap(place);
  return OrFail(std::move(node));
}

void AddMapSource(CLI::App& command, MapPlace& place, Globals& globals) {
  place.AddTo(command);
  globals.with_server.insert(&command);
}

std::unique_ptr<ShardMaps> OpenMaps(const CLI::App& command, MapPlace& place, const Globals& globals) {
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  const bool by_server = IsOnCommandLine(*program, "--server");
  for (const char* option : {"--zookeeper", "--root"}) {
    if (by_server && IsOnCommandLine(command, option))
      WrongUsage(fmt::format("--server: not together with {}; a server knows where its maps are", option));
  }
  // Where the environment names both, the maps are read where kv shards set writes them.
  const bool has_place = !place.zookeeper.servers.empty() || !globals.config.empty();
  if (!globals.server.empty() && (by_server || !has_place)) {
    place.root.clear();
    return std::make_unique<client::Client>(
        OrFail(client::Caller::Open(globals.server, globals.ServerConnection())));
  }
  place.Complete(globals);
  return OpenStoredShardMaps(place.zookeeper, place.root);
}

std::string GetMap(ShardMaps& maps, const MapPlace& place) {
  auto map = maps.GetShardMap(place.mod);
  if (absl::IsNotFound(map.status())) throw NoMap(place);
  return OrFail(std::move(map));
}

std::string ReadText(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Failure{absl::NotFoundError(fmt::format("cannot open {}", file))};
  return {std::istreambuf_iterator<char>(in), {}};
}

ShardMap ReadMap(const std::string& text, bool mod) {
  ShardMap map = OrFail(ShardMap::Parse(text));
  if (mod) OrFail(ValidateModMap(map));
  return map;
}

Json ChangesToJson(const std::vector<ShardChange>& changes) {
  Json list = Json::array();
  for (const ShardChange& change : changes) {
    list.push_back({{"range", {change.first, change.last}},
                    {"before", HostsToJson(change.before)},
                    {"after", HostsToJson(change.after)}});
  }
  return list;
}

void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals) {
  if (globals.json) {
    PrintJson({{"ok", true}, {"changes", ChangesToJson(changes)}});
    return;
  }
  for (const ShardChange& change : changes) Print("{}\n", change.ToString());
  if (changes.empty()) Print("no change\n");
}

}  // namespace kvstore::cli
