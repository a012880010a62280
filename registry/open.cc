#include "registry/open.h"

#include <utility>
#include <vector>

#include "backends/mysql/backend.h"
#include "backends/remote/backend.h"
#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/data_dir.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/zookeeper_catalog.h"
#include "registry/mysql_backend.h"

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
                             .id_cache = cache.empty() ? cache : cache / "shards-id.json",
                             .mod_cache = cache.empty() ? cache : cache / "shards-mod.json"},
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
  if (options.coordination) {
    catalog = std::make_unique<ZooKeeperCatalog>(options.coordination->zookeeper, options.coordination->root,
                                                 options.data / kCatalogCopy, KV_VERSION);
  } else {
    catalog = std::make_unique<FileCatalog>(dir->catalog());
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
                                        {.cache_bytes = options.cache_bytes});
    if (!rocksdb.ok()) return rocksdb.status();
    backends.emplace(options.rocksdb, *std::move(rocksdb));
  }
  return Router::Open(std::move(catalog), *contents, std::move(backends), options.default_backend);
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
  std::error_code ignored;
  // Where there is no store yet nothing must lie in its place.
  const bool store = std::filesystem::exists(rocks::DataDir::CatalogOf(options.data), ignored);
  auto mysql = OpenMySqlBackend(*options.mysql, store ? options.data : "");
  if (!mysql.ok()) return mysql.status();
  return (*mysql)->Init(MySqlDatasetsReader(options), progress, left_alone);
}

}  // namespace kvstore
