#include "cli/stored_shard_maps.h"

#include <string>
#include <utility>

#include "assembly/backend_config.h"
#include "coordination/zookeeper.h"
#include "shardmap/nodes.h"
#include "shardmap/shard_map.h"
#include "shardops/map_history.h"

namespace kvstore::cli {
namespace {

class StoredShardMaps : public ShardMaps {
 public:
  StoredShardMaps(ZooKeeperOptions zookeeper, std::string root)
      : options_(std::move(zookeeper)), root_(std::move(root)) {}

  absl::StatusOr<std::string> GetShardMap(ShardSpace space) override {
    ZooKeeper zookeeper(options_, nullptr);
    auto node = zookeeper.Get(MapPath(root_, space), /*watch=*/false);
    if (!node.ok()) return node.status();
    if (ShardMap::IsCompact(node->data)) {
      if (const auto map = ShardMap::Parse(node->data); map.ok()) return map->ToJson();
    }
    return std::move(node->data);
  }
  absl::StatusOr<std::vector<Kept>> ListShardMaps(ShardSpace space) override {
    ZooKeeper zookeeper(options_, nullptr);
    const auto history = shardops::ReadHistory(zookeeper, root_, space);
    if (!history.ok()) return history.status();
    std::vector<Kept> maps;
    for (const shardops::KeptMap& kept : *history) {
      maps.push_back({kept.name, kept.at_ms, kept.who, std::nullopt});
      if (kept.map) maps.back().map = kept.map->ToStored();
    }
    return maps;
  }

 private:
  const ZooKeeperOptions options_;
  const std::string root_;
};

}  // namespace

std::unique_ptr<ShardMaps> OpenStoredShardMaps(const ZooKeeperOptions& zookeeper, const std::string& root) {
  return std::make_unique<StoredShardMaps>(zookeeper, root);
}

std::unique_ptr<ShardMaps> OpenStoredShardMaps(const OpenOptions& store) {
  if (const MySqlFleetOptions* fleet = FindFleet(store); fleet && !fleet->zookeeper.servers.empty()) {
    return OpenStoredShardMaps(fleet->zookeeper, fleet->root);
  }
  if (!store.coordination) return nullptr;
  return OpenStoredShardMaps(store.coordination->zookeeper, store.coordination->root);
}

}  // namespace kvstore::cli
