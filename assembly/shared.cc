#include "assembly/shared.h"

#include "catalog/zookeeper_catalog.h"
#include "catalog/zookeeper_consumers.h"
#include "catalog/zookeeper_ledger.h"
#include "catalog/zookeeper_table_records.h"
#include "shardmap/zookeeper_source.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<Catalog>> OpenSharedCatalog(const Coordination& coordination,
                                                           const std::filesystem::path& copy) {
  return std::make_unique<ZooKeeperCatalog>(coordination.zookeeper, coordination.root, copy, KV_VERSION);
}

absl::StatusOr<std::vector<std::unique_ptr<MapSource>>> OpenSharedMaps(
    const ZooKeeperOptions& zookeeper, const std::vector<std::string>& paths) {
  return OpenZooKeeperSources(zookeeper, paths);
}

std::unique_ptr<ConsumerPlaces> OpenFleetConsumers(const MySqlFleetOptions& fleet) {
  if (fleet.zookeeper.servers.empty()) return nullptr;
  return std::make_unique<ZooKeeperConsumers>(fleet.zookeeper, fleet.root);
}

std::unique_ptr<TableRecords> OpenFleetTables(const MySqlFleetOptions& fleet) {
  if (fleet.zookeeper.servers.empty()) return nullptr;
  return std::make_unique<ZooKeeperTableRecords>(
      std::make_shared<ZooKeeper>(fleet.zookeeper, nullptr, ZooKeeper::Away::kTriesInCalls), fleet.root);
}

std::unique_ptr<Ledger> OpenFleetLedger(const MySqlFleetOptions& fleet) {
  if (fleet.zookeeper.servers.empty()) return nullptr;
  return std::make_unique<ZooKeeperLedger>(fleet.zookeeper, fleet.root);
}

}  // namespace kvstore
