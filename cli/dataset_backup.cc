#include "cli/dataset_backup.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "assembly/open_router.h"
#include "backup/dataset_create.h"
#include "backup/dataset_restore.h"
#include "cli/backup_place.h"
#include "cli/progress.h"
#include "router/catalog_keeper.h"

namespace kvstore::cli {
namespace {

/// Returns the type number for a dataset of objects: that of the backup unless another dataset has it; 0, for
/// a free one, otherwise.
uint32_t FreeType(Router& router, uint32_t wanted) {
  const auto datasets = OrFail(router.ListDatasets());
  const bool taken = std::any_of(datasets.begin(), datasets.end(), [&](const DatasetSpec& spec) {
    return spec.shape == Shape::kObjects && spec.type == wanted;
  });
  return taken ? 0 : wanted;
}

}  // namespace

absl::StatusOr<backup::Manifest> BackUpDataset(Router& router, const std::string& dataset, BlobStore& blobs,
                                               const Progress& progress, uint64_t bytes_per_s) {
  CatalogKeeper& keeper = router.keeper();
  const auto entry = keeper.LoadEntry(dataset);
  if (!entry.ok()) return entry.status();
  const auto backend = keeper.FindBackend(entry->spec.backend);
  if (!backend.ok()) return backend.status();
  const auto reader = (*backend)->OpenUnits(entry->spec);
  if (!reader.ok()) return reader.status();
  const auto stats = keeper.GetStats(dataset);
  return backup::CreateDatasetBackup(**reader, entry->spec, blobs, stats.ok() ? stats->approximate_bytes : 0,
                                     progress, bytes_per_s);
}

DatasetSpec RestoreDataset(const Globals& globals, const backup::Manifest& manifest, BlobStore& blobs,
                           const std::string& as, const std::string& backend) {
  if (!manifest.dataset) {
    throw Failure{absl::InvalidArgumentError("backup: it is not one of a dataset; restore it with --to DIR")};
  }
  if (!globals.server.empty()) {
    throw Failure{absl::UnimplementedError(
        "--server: a dataset is not restored through a server; name the store with --data DIR, if no process "
        "has it open, or its configuration with --config FILE")};
  }
  const auto router = OrFail(OpenRouter(globals.StoreOptions()));
  CatalogKeeper& keeper = router->keeper();
  const DatasetSpec& kept = manifest.dataset->spec;
  DatasetSpec spec = kept;
  if (!as.empty()) spec.name = as;
  if (!backend.empty()) {
    spec.backend = backend;
  } else if (!keeper.FindBackend(kept.backend).ok()) {
    spec.backend.clear();
  }
  // Another backend may have no engine of that name.
  if (spec.backend != kept.backend) spec.engine.clear();
  if (spec.shape == Shape::kObjects) spec.type = FreeType(*router, kept.type);
  spec.incarnation = 0;
  spec.table.clear();
  // Nobody has followed this one.
  spec.keep_changes_ms = 0;
  ProgressBar bar("restore", "bytes");
  OrFail(keeper.CreateDataset(spec, [&](const DatasetSpec& made, Backend& on) {
    auto endpoint = on.OpenForMigration(made);
    if (!endpoint.ok()) return endpoint.status();
    return backup::RestoreUnits(manifest, blobs, **endpoint, made, ShowBytes(bar));
  }));
  return OrFail(keeper.LoadEntry(spec.name)).spec;
}

}  // namespace kvstore::cli
