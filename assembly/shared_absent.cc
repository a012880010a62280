#include "assembly/shared.h"

/// Takes the place of shared.cc where KV_WITH_ZOOKEEPER is off.
namespace kvstore {
namespace {

absl::Status NoZooKeeper() {
  return absl::FailedPreconditionError("config: names ZooKeeper, and this program was built without it");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Catalog>> OpenSharedCatalog(const Coordination&,
                                                           const std::filesystem::path&) {
  return NoZooKeeper();
}

absl::StatusOr<std::vector<std::unique_ptr<MapSource>>> OpenSharedMaps(const ZooKeeperOptions&,
                                                                       const std::vector<std::string>&) {
  return NoZooKeeper();
}

std::unique_ptr<ConsumerPlaces> OpenFleetConsumers(const MySqlFleetOptions&) { return nullptr; }

std::unique_ptr<TableRecords> OpenFleetTables(const MySqlFleetOptions&) { return nullptr; }

std::unique_ptr<Ledger> OpenFleetLedger(const MySqlFleetOptions&) { return nullptr; }

}  // namespace kvstore
