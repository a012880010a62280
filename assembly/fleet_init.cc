#include "assembly/fleet_init.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "assembly/backend_config.h"
#include "assembly/datasets.h"
#include "assembly/mysql_backend.h"
#include "assembly/shared.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "catalog/file_catalog.h"
#include "catalog/zookeeper_catalog.h"
#include "coordination/zookeeper.h"
#include "shardmap/remembered_hosts.h"

namespace kvstore {
namespace {

/// How long InitShards waits for operations that exclude it and end by themselves.
constexpr std::chrono::seconds kInitPatience{60};

/// The claims are shared, so that operations that last, such as shards that move and datasets that migrate,
/// do not keep a new store from starting.
Operation InitOf(const std::vector<DatasetSpec>& datasets) {
  constexpr ClaimMode kShared = ClaimMode::kShared;
  Operation operation{.what = "init shards",
                      .claims = {Claim::Shards(ShardSpace::kId, 0, Claim::kLastShard, kShared),
                                 Claim::Shards(ShardSpace::kMod, 0, Claim::kLastShard, kShared)}};
  for (const DatasetSpec& spec : datasets) operation.claims.push_back(Claim::Dataset(spec.name, kShared));
  return operation;
}

absl::Status NoFleetError() {
  return absl::InvalidArgumentError(
      "config: backends: none is of type mysql; name the MySQL servers (docs/configuration.md)");
}

}  // namespace

std::function<absl::StatusOr<std::vector<DatasetSpec>>()> MySqlDatasetsReader(const OpenOptions& options) {
  std::shared_ptr<Catalog> catalog;
  if (options.coordination) {
    catalog = std::make_shared<ZooKeeperCatalog>(options.coordination->zookeeper, options.coordination->root,
                                                 "", KV_VERSION);
  } else {
    catalog = std::make_shared<FileCatalog>(rocks::DataDir::CatalogOf(options.data));
  }
  const auto fleet = FindBackendOfType(options, kMySql);
  return [catalog, name = fleet ? fleet->name : ""]() -> absl::StatusOr<std::vector<DatasetSpec>> {
    if (name.empty()) return NoFleetError();
    const auto contents = catalog->Load();
    if (!contents.ok()) return contents.status();
    // A dataset that is left out would lack its tables on new shards.
    if (auto status = CheckAllReadable(*contents, "the datasets of the shards are not known"); !status.ok())
      return status;
    return DatasetsOf(contents->entries, name);
  };
}

absl::Status InitShards(const OpenOptions& options, const Progress& progress, LeftAlone* left_alone,
                        bool ignore_empty) {
  const MySqlFleetOptions* fleet = FindFleet(options);
  if (fleet == nullptr) return NoFleetError();
  const auto datasets = MySqlDatasetsReader(options)();
  if (!datasets.ok()) return datasets.status();
  std::error_code ignored;
  // Copies of the maps are kept only beside a store: where there is none yet, nothing may lie in its place.
  const bool store = std::filesystem::exists(rocks::DataDir::CatalogOf(options.data), ignored);
  auto mysql = OpenMySqlBackend(*fleet, store ? options.data : "");
  if (!mysql.ok()) return mysql.status();
  const auto ledger = OpenFleetLedger(*fleet);
  if (ledger == nullptr) return (*mysql)->Init(MySqlDatasetsReader(options), progress, left_alone);
  const auto held = ledger->BeginWithin(InitOf(*datasets), kInitPatience);
  if (!held.ok()) return held.status();
  ZooKeeper zookeeper(fleet->zookeeper, nullptr);
  const std::vector<Host> others = RememberedHosts(zookeeper, fleet->root);
  const auto empty = ignore_empty ? mysql::EmptyElsewhere::kIgnored : mysql::EmptyElsewhere::kRefused;
  if (auto status = (*mysql)->CheckNowhereElse(others, empty); !status.ok()) return status;
  // The reader loads the catalog again: from here on no dataset can go, but some may have gone before.
  return (*mysql)->Init(MySqlDatasetsReader(options), progress, left_alone);
}

}  // namespace kvstore
