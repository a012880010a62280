#include "registry/open.h"

#include <utility>
#include <vector>

#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/data_dir.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/router.h"

namespace kvstore {
namespace {

constexpr char kRocksDb[] = "rocksdb";

}  // namespace

absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options) {
  auto dir = rocks::DataDir::Open(options.data, options.create_if_missing);
  if (!dir.ok()) return dir.status();
  auto catalog = std::make_unique<FileCatalog>(dir->catalog());
  const auto entries = catalog->Load();
  if (!entries.ok()) return entries.status();
  std::vector<DatasetSpec> embedded;
  for (const CatalogEntry& entry : *entries) {
    if (entry.state == DatasetState::kActive && entry.spec.backend == kRocksDb)
      embedded.push_back(entry.spec);
  }
  auto rocksdb = RocksDbBackend::Open(*std::move(dir), embedded, {.cache_bytes = options.cache_bytes});
  if (!rocksdb.ok()) return rocksdb.status();
  Router::Backends backends;
  backends.emplace(kRocksDb, *std::move(rocksdb));
  return Router::Open(std::move(catalog), std::move(backends), kRocksDb);
}

}  // namespace kvstore
