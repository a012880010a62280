#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "backends/rocksdb/backend.h"
#include "catalog/file_catalog.h"
#include "reports/reports.h"
#include "router/router.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Opens an embedded store in an empty folder. Unlike kvstore::Open, it needs none of the other backends,
/// which take long to compile.
inline std::unique_ptr<KVStore> OpenEmbedded(const std::filesystem::path& folder) {
  auto dir = rocks::DataDir::Open(folder, /*create=*/true);
  if (!dir.ok()) std::abort();
  auto catalog = std::make_unique<FileCatalog>(dir->catalog());
  auto backend = RocksDbBackend::Open(*std::move(dir), {}, {}, {});
  if (!backend.ok()) std::abort();
  Router::Backends backends;
  backends.emplace("rocksdb", *std::move(backend));
  auto router = Router::Open(std::move(catalog), std::move(backends), "rocksdb");
  if (!router.ok()) std::abort();
  return *std::move(router);
}

/// Returns a store with a dataset of each shape ("r", "o" of type 1, "m"), and a report "f" in the dataset
/// "reports", which lives as long as the process.
inline KVStore& FuzzStore() {
  static const TempDir dir;
  static const auto store = [] {
    auto opened = OpenEmbedded(dir / "store");
    if (!opened->CreateDataset({.name = "r", .max_versions = 0}).ok() ||
        !opened->CreateDataset({.name = "o", .shape = Shape::kObjects, .type = 1}).ok() ||
        !opened->CreateDataset({.name = "m", .shape = Shape::kMappings}).ok()) {
      std::abort();
    }
    const reports::ReportInfo report{.name = "f",
                                     .keys = {{"k", "?"}},
                                     .metrics = {{.name = "m"},
                                                 {.name = "d", .kind = reports::MetricKind::kDistribution},
                                                 {.name = "u", .kind = reports::MetricKind::kDistinct}}};
    if (!reports::LocalReports(*opened, "reports")->Create(report).ok()) std::abort();
    return opened;
  }();
  return *store;
}

}  // namespace kvstore::testing
