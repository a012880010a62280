#include "cli/map_place.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/escape.h"
#include "shardmap/mod_shard.h"

namespace kvstore::cli {
namespace {

Json HostsToJson(const std::optional<ShardRange>& range) {
  if (!range) return nullptr;
  return {{"master", range->master.ToString()}, {"slave", range->slave.ToString()}};
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
  command.add_option("--root", root, "Node below which all nodes are; /kvstore");
}

void MapPlace::Complete(const Globals& globals) {
  if (zookeeper.servers.empty() && !globals.config.empty()) {
    const OpenOptions options = globals.StoreOptions();
    if (options.mysql) {
      const std::string auth = std::exchange(zookeeper, options.mysql->zookeeper).auth;
      if (!auth.empty()) zookeeper.auth = auth;
      if (root.empty()) root = options.mysql->root;
    }
  }
  if (zookeeper.servers.empty()) {
    throw Failure{
        absl::InvalidArgumentError("zookeeper: say --zookeeper SERVERS, or --config with the fleet's")};
  }
  if (root.empty()) root = "/kvstore";
}

void MapPlace::AddAuth(CLI::App& command) {
  command
      .add_option("--auth", zookeeper.auth,
                  "user:password; a node that this makes can be written by this user only")
      ->envname("KV_ZOOKEEPER_AUTH");
}

void MapPlace::AddKind(CLI::App& command) { command.add_flag("--mod", mod, "The map of mod shards"); }

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

void PrintChanges(const std::vector<ShardChange>& changes, const Globals& globals) {
  if (globals.json) {
    Json list = Json::array();
    for (const ShardChange& change : changes) {
      list.push_back({{"range", {change.first, change.last}},
                      {"before", HostsToJson(change.before)},
                      {"after", HostsToJson(change.after)}});
    }
    PrintJson({{"ok", true}, {"changes", std::move(list)}});
    return;
  }
  for (const ShardChange& change : changes) Print("{}\n", change.ToString());
  if (changes.empty()) Print("no change\n");
}

}  // namespace kvstore::cli
