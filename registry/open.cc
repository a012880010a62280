#include "registry/open.h"

#include <utility>
#include <vector>

#include "backends/mysql/backend.h"
#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/data_dir.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/router.h"
#include "registry/mysql_backend.h"

namespace kvstore {
namespace {

/// The active datasets of a backend.
std::vector<DatasetSpec> DatasetsOf(const std::vector<CatalogEntry>& entries, std::string_view backend) {
  std::vector<DatasetSpec> specs;
  for (const CatalogEntry& entry : entries) {
    if (entry.state == DatasetState::kActive && entry.spec.backend == backend) specs.push_back(entry.spec);
  }
  return specs;
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
                             .id_cache = cache.empty() ? cache : cache / "shards-id.json",
                             .mod_cache = cache.empty() ? cache : cache / "shards-mod.json"},
                            fleet.options);
}

absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options) {
  auto dir = rocks::DataDir::Open(options.data, options.create_if_missing);
  if (!dir.ok()) return dir.status();
  auto catalog = std::make_unique<FileCatalog>(dir->catalog());
  const auto entries = catalog->Load();
  if (!entries.ok()) return entries.status();
  Router::Backends backends;
  if (options.mysql) {
    auto mysql = OpenMySqlBackend(*options.mysql, options.data);
    if (!mysql.ok()) return mysql.status();
    backends.emplace(kMySql, *std::move(mysql));
  }
  auto rocksdb = RocksDbBackend::Open(*std::move(dir), DatasetsOf(*entries, kRocksDb),
                                      {.cache_bytes = options.cache_bytes});
  if (!rocksdb.ok()) return rocksdb.status();
  backends.emplace(kRocksDb, *std::move(rocksdb));
  return Router::Open(std::move(catalog), std::move(backends), options.default_backend);
}

absl::Status InitShards(const OpenOptions& options, const Progress& progress) {
  if (!options.mysql) return absl::InvalidArgumentError("config: has no mysql");
  const std::filesystem::path file = rocks::DataDir::CatalogOf(options.data);
  FileCatalog catalog(file);
  const auto entries = catalog.Load();
  if (!entries.ok()) return entries.status();
  // Where there is no store yet nothing must lie in its place.
  std::error_code ignored;
  auto mysql = OpenMySqlBackend(*options.mysql, std::filesystem::exists(file, ignored) ? options.data : "");
  if (!mysql.ok()) return mysql.status();
  return (*mysql)->Init(DatasetsOf(*entries, kMySql), progress);
}

}  // namespace kvstore
