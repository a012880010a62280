#include "registry/open.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "backends/mysql/backend.h"
#include "backends/remote/backend.h"
#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/data_dir.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/zookeeper_catalog.h"
#include "kvstore_api/zookeeper_ledger.h"
#include "registry/mysql_backend.h"
#include "shardmap/nodes.h"

namespace kvstore {
namespace {

constexpr char kCatalogCopy[] = "catalog-copy.json";

/// The active datasets of a backend.
std::vector<DatasetSpec> DatasetsOf(const std::vector<CatalogEntry>& entries, std::string_view backend) {
  std::vector<DatasetSpec> specs;
  for (const CatalogEntry& entry : entries) {
    if (entry.state == DatasetState::kActive && entry.spec.backend == backend) specs.push_back(entry.spec);
  }
  return specs;
}

/// Those that migrate, of which the backend is the other side.
std::vector<DatasetSpec> MovingOf(const std::vector<CatalogEntry>& entries, std::string_view backend) {
  std::vector<DatasetSpec> specs;
  for (const CatalogEntry& entry : entries) {
    if (!entry.other_backend.empty() && entry.other_backend == backend) specs.push_back(OtherSide(entry));
  }
  return specs;
}

/// Where operators of the fleet begin what they do; null: they have no ZooKeeper.
std::unique_ptr<Ledger> OpenFleetLedger(const MySqlFleet& fleet) {
  if (fleet.zookeeper.servers.empty()) return nullptr;
  return std::make_unique<ZooKeeperLedger>(fleet.zookeeper, fleet.root);
}

/// Whether the catalog is where the fleet's operators have their ledger.
bool HasSameLedger(const OpenOptions& options) {
  return options.coordination && options.coordination->root == options.mysql->root &&
         options.coordination->zookeeper.servers == options.mysql->zookeeper.servers;
}

/// How long a start waits for operations that end by themselves.
constexpr std::chrono::seconds kInitPatience{60};

/// Beside all that lasts: a store that starts is not kept from it by shards that move, or datasets that
/// migrate.
Operation InitOf(const std::vector<DatasetSpec>& datasets) {
  constexpr ClaimMode kShared = ClaimMode::kShared;
  Operation operation{.what = "init shards",
                      .claims = {Claim::Shards(/*mod=*/false, 0, Claim::kLastShard, kShared),
                                 Claim::Shards(/*mod=*/true, 0, Claim::kLastShard, kShared)}};
  for (const DatasetSpec& spec : datasets) operation.claims.push_back(Claim::Dataset(spec.name, kShared));
  return operation;
}

absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError("cannot make " + folder.string() + ": " + error.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MySqlBackend>> OpenMySqlBackend(const MySqlFleet& fleet,
                                                               const std::filesystem::path& cache) {
  const bool zookeeper = !fleet.zookeeper.servers.empty();
  const auto source = [&](const std::filesystem::path& file, const char* node) {
    return zookeeper ? OpenZooKeeperSource(fleet.zookeeper, fleet.root + node) : OpenFileSource(file);
  };
  return MySqlBackend::Open({.id = source(fleet.id_map, "/shards/id"),
                             .mod = source(fleet.mod_map, "/shards/mod"),
                             .weights = zookeeper ? source({}, "/shards/weights") : nullptr,
                             .id_cache = cache.empty() ? cache : MapCopy(cache, /*mod=*/false),
                             .mod_cache = cache.empty() ? cache : MapCopy(cache, /*mod=*/true)},
                            fleet.options);
}

absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options) { return OpenRouter(options); }

absl::StatusOr<std::unique_ptr<Router>> OpenRouter(const OpenOptions& options) {
  if (options.rocksdb.empty() && !options.coordination) {
    return absl::InvalidArgumentError(
        "config: backends: without zookeeper the catalog is in the embedded store: name a backend of type "
        "rocksdb");
  }
  // Without an embedded store the directory holds copies only, and is nobody's alone.
  std::optional<rocks::DataDir> dir;
  if (!options.rocksdb.empty()) {
    auto opened = rocks::DataDir::Open(options.data, options.create_if_missing);
    if (!opened.ok()) return opened.status();
    dir.emplace(*std::move(opened));
  } else if (auto status = MakeFolder(options.data); !status.ok()) {
    return status;
  }
  std::unique_ptr<Catalog> catalog;
  bool catalog_missing = false;
  if (options.coordination) {
    catalog = std::make_unique<ZooKeeperCatalog>(options.coordination->zookeeper, options.coordination->root,
                                                 options.data / kCatalogCopy, KV_VERSION);
  } else {
    std::error_code error;
    catalog_missing = !std::filesystem::exists(dir->catalog(), error) && !error;
    catalog = std::make_unique<FileCatalog>(dir->catalog(),
                                            [reserve = dir->shared_reserve()] { reserve->Release(); });
  }
  auto contents = LoadOrCopy(*catalog);
  if (!contents.ok()) return contents.status();
  Router::Backends backends;
  if (options.mysql) {
    auto mysql = OpenMySqlBackend(*options.mysql, options.data);
    if (!mysql.ok()) return mysql.status();
    backends.emplace(options.mysql_name, *std::move(mysql));
  }
  for (const auto& [name, server] : options.remotes) {
    ConnectOptions connect = server.options;
    if (options.coordination) connect.backend = name;
    auto remote = RemoteBackend::Connect(server.address, connect);
    if (!remote.ok()) return remote.status();
    backends.emplace(name, *std::move(remote));
  }
  if (!options.rocksdb.empty()) {
    auto rocksdb = RocksDbBackend::Open(*std::move(dir), DatasetsOf(contents->entries, options.rocksdb),
                                        MovingOf(contents->entries, options.rocksdb),
                                        {.cache_bytes = options.cache_bytes,
                                         .wal_bytes = options.wal_bytes,
                                         .catalog_missing = catalog_missing});
    if (!rocksdb.ok()) return rocksdb.status();
    backends.emplace(options.rocksdb, *std::move(rocksdb));
  }
  std::unique_ptr<Ledger> fleet;
  if (options.mysql && !HasSameLedger(options)) fleet = OpenFleetLedger(*options.mysql);
  return Router::Open(std::move(catalog), *contents, std::move(backends), options.default_backend,
                      std::move(fleet));
}

absl::StatusOr<std::vector<DatasetSpec>> MySqlDatasets(const OpenOptions& options) {
  return MySqlDatasetsReader(options)();
}

std::function<absl::StatusOr<std::vector<DatasetSpec>>()> MySqlDatasetsReader(const OpenOptions& options) {
  std::shared_ptr<Catalog> catalog;
  if (options.coordination) {
    catalog = std::make_shared<ZooKeeperCatalog>(options.coordination->zookeeper, options.coordination->root,
                                                 "", KV_VERSION);
  } else {
    catalog = std::make_shared<FileCatalog>(rocks::DataDir::CatalogOf(options.data));
  }
  return [catalog, name = options.mysql_name]() -> absl::StatusOr<std::vector<DatasetSpec>> {
    const auto contents = catalog->Load();
    if (!contents.ok()) return contents.status();
    return DatasetsOf(contents->entries, name);
  };
}

absl::Status InitShards(const OpenOptions& options, const Progress& progress, LeftAlone* left_alone) {
  if (!options.mysql) return absl::InvalidArgumentError("config: has no mysql");
  const auto datasets = MySqlDatasets(options);
  if (!datasets.ok()) return datasets.status();
  std::error_code ignored;
  // Where there is no store yet nothing must lie in its place.
  const bool store = std::filesystem::exists(rocks::DataDir::CatalogOf(options.data), ignored);
  auto mysql = OpenMySqlBackend(*options.mysql, store ? options.data : "");
  if (!mysql.ok()) return mysql.status();
  const auto ledger = OpenFleetLedger(*options.mysql);
  if (ledger == nullptr) return (*mysql)->Init(MySqlDatasetsReader(options), progress, left_alone);
  const auto held = ledger->BeginWithin(InitOf(*datasets), kInitPatience);
  if (!held.ok()) return held.status();
  // The catalog is read again now that none of them can go.
  ZooKeeper zookeeper(options.mysql->zookeeper, nullptr);
  const std::vector<Host> others = RememberedHosts(zookeeper, options.mysql->root);
  if (auto status = (*mysql)->CheckNowhereElse(others); !status.ok()) return status;
  return (*mysql)->Init(MySqlDatasetsReader(options), progress, left_alone);
}

}  // namespace kvstore
