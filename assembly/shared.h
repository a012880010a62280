#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/consumer_places.h"
#include "backend_api/table_records.h"
#include "catalog/catalog.h"
#include "catalog/ledger.h"
#include "kvstore_api/open.h"
#include "shardmap/map_source.h"

/// Opens what processes share in ZooKeeper. The functions that return a StatusOr return FAILED_PRECONDITION
/// if this build was made without ZooKeeper (KV_WITH_ZOOKEEPER).
namespace kvstore {

/// A catalog that is shared with other processes.
///
/// copy  the file in which a copy of the catalog is kept, for a start while ZooKeeper is down; empty: none.
absl::StatusOr<std::unique_ptr<Catalog>> OpenSharedCatalog(const Coordination& coordination,
                                                           const std::filesystem::path& copy);

/// The shard maps in these nodes, which share a session with ZooKeeper.
absl::StatusOr<std::vector<std::unique_ptr<MapSource>>> OpenSharedMaps(const ZooKeeperOptions& zookeeper,
                                                                       const std::vector<std::string>& paths);

/// Where the places of consumers of the fleet's datasets are noted. Null if the fleet's
/// maps are not in ZooKeeper, or if this build has no ZooKeeper.
std::unique_ptr<ConsumerPlaces> OpenFleetConsumers(const MySqlFleetOptions& fleet);

/// Where it is recorded which tables of the fleet's datasets were made on first use. Null if the fleet's
/// maps are not in ZooKeeper, or if this build has no ZooKeeper.
std::unique_ptr<TableRecords> OpenFleetTables(const MySqlFleetOptions& fleet);

/// The ledger in which the fleet's operators record their operations. Null if the fleet's
/// maps are not in ZooKeeper, so that it has no ledger, or if this build has no ZooKeeper.
std::unique_ptr<Ledger> OpenFleetLedger(const MySqlFleetOptions& fleet);

}  // namespace kvstore
