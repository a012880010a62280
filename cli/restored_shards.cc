#include "cli/restored_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "assembly/config.h"
#include "assembly/fleet_init.h"
#include "assembly/open_router.h"
#include "base/files.h"
#include "catalog/shared_nodes.h"
#include "cli/escape.h"
#include "json/json_text.h"
#include "shardmap/mod_shard.h"
#include "shardmap/shard_map.h"
#include "shardops/quoted.h"

namespace kvstore::cli {
namespace {

namespace fs = std::filesystem;

/// The slave in the maps of restored shards; nobody connects to it.
constexpr char kNoSlave[] = "none";

/// The datasets whose tables were restored, and the name that they have for their backend.
struct RestoredDatasets {
  std::string backend = kMySql;
  std::vector<CatalogEntry> entries;
};

/// Finds the datasets of which the shards have tables.
RestoredDatasets FindDatasets(const SharedNodes& nodes, const std::set<std::string>& tables,
                              ShardSpace space) {
  std::map<std::string, std::vector<CatalogEntry>> by_backend;
  std::vector<std::string> unreadable;
  for (CatalogEntry& entry : ActiveEntries(nodes, &unreadable)) {
    const std::string& table = entry.spec.table.empty() ? entry.spec.name : entry.spec.table;
    if ((entry.spec.shape == Shape::kRows) != (space == ShardSpace::kMod) || !tables.contains(table))
      continue;
    // A migration has no other side here.
    entry.other_backend.clear();
    entry.other_engine.clear();
    by_backend[entry.spec.backend].push_back(std::move(entry));
  }
  for (const std::string& entry : unreadable) {
    PrintErr("a dataset is left out, because its entry in the catalog cannot be read: {}\n", entry);
  }
  RestoredDatasets found;
  // A fleet has one name in a catalog; a dataset of another backend may have a table of its name by chance.
  for (auto& [backend, entries] : by_backend) {
    if (entries.size() > found.entries.size()) found = {backend, std::move(entries)};
  }
  return found;
}

std::string MapText(uint32_t first, uint32_t last, const Host& host) {
  return ShardMap::Create({{first, last, host, Host{.name = kNoSlave}}})->ToJson();
}

/// Returns the number of mod shards of the fleet that the shards were restored from.
absl::StatusOr<uint32_t> CountModShards(const SharedNodes& nodes) {
  const auto node = nodes.find("shards/mod");
  if (node == nodes.end()) return absl::DataLossError("zookeeper.json: it has no map of mod shards");
  const auto map = ShardMap::Parse(node->second);
  if (!map.ok()) return map.status();
  return ModShardCount(*map);
}

absl::Status WriteMaps(const fs::path& folder, const Host& host, const SharedNodes& nodes,
                       const shardops::MoveRange& shards) {
  // The other space has one shard, which no dataset uses.
  uint32_t mod_shards = 1;
  if (shards.space == ShardSpace::kMod) {
    const auto count = CountModShards(nodes);
    if (!count.ok()) return count.status();
    mod_shards = *count;
  }
  const std::string id_map =
      shards.space == ShardSpace::kMod ? MapText(0, 0, host) : MapText(shards.first, shards.last, host);
  if (auto status = ReplaceFile(folder / "id-map.json", id_map); !status.ok()) return status;
  return ReplaceFile(folder / "mod-map.json", MapText(0, mod_shards - 1, host));
}

absl::Status WriteConfig(const fs::path& file, const std::string& backend,
                         const fleet_backup::ScratchServer& server) {
  const Json mysql = {{"type", kMySql},
                      {"user", fleet_backup::ScratchServer::kUser},
                      {"password", server.password()},
                      {"id_map", "id-map.json"},
                      {"mod_map", "mod-map.json"}};
  const std::string embedded = backend == kRocksDb ? "embedded" : kRocksDb;
  const Json config = {{"data", "store"},
                       {"default_backend", embedded},
                       {"backends", {{embedded, {{"type", kRocksDb}}}, {backend, mysql}}}};
  return ReplaceFile(file, TextOf(config, 2) + "\n");
}

absl::Status WriteCatalog(const OpenOptions& options, const std::vector<CatalogEntry>& entries) {
  const auto router = OpenRouter(options);
  if (!router.ok()) return router.status();
  return (*router)->keeper().WithCatalog([&](Catalog& catalog) -> absl::Status {
    const auto contents = catalog.Load();
    if (!contents.ok()) return contents.status();
    int64_t version = contents->version;
    for (const CatalogEntry& entry : entries) {
      const auto put = catalog.Put(entry, version);
      if (!put.ok()) return put.status();
      version = *put;
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status WriteStore(const fs::path& folder, const fleet_backup::ScratchServer& server,
                        const fleet_backup::RestoredHost& restored, const shardops::MoveRange& shards) {
  const auto tables =
      server.Ask(fmt::format("SELECT table_name FROM information_schema.tables WHERE table_schema = {}",
                             shardops::Quoted(shards.Databases().front())));
  if (!tables.ok()) return tables.status();
  const RestoredDatasets datasets =
      FindDatasets(restored.nodes, {tables->begin(), tables->end()}, shards.space);
  if (auto status = WriteMaps(folder, server.host(), restored.nodes, shards); !status.ok()) return status;
  const fs::path file = folder / "kv.json";
  if (auto status = WriteConfig(file, datasets.backend, server); !status.ok()) return status;
  const auto config = ReadConfig(file.string());
  if (!config.ok()) return config.status();
  if (auto status = WriteCatalog(config->store, datasets.entries); !status.ok()) return status;
  return InitShards(config->store, /*progress=*/nullptr, /*left_alone=*/nullptr);
}

}  // namespace kvstore::cli
