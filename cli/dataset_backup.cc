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

/// Opens the store that was named, in this process.
std::unique_ptr<Router> OpenHere(const Globals& globals, bool create_if_missing) {
  if (!globals.server.empty()) {
    throw Failure{absl::UnimplementedError(
        "--server: a dataset is not backed up or restored through a server; name the store with --data DIR, "
        "if no process has it open, or its configuration with --config FILE")};
  }
  OpenOptions options = globals.StoreOptions();
  if (!create_if_missing) options.create_if_missing = false;
  return OrFail(OpenRouter(options));
}

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

backup::Manifest BackUpDataset(const Globals& globals, const std::string& dataset, BlobStore& blobs,
                               uint64_t bytes_per_s) {
  const auto router = OpenHere(globals, /*create_if_missing=*/false);
  CatalogKeeper& keeper = router->keeper();
  const DatasetSpec spec = OrFail(keeper.LoadEntry(dataset)).spec;
  const auto reader = OrFail(OrFail(keeper.FindBackend(spec.backend))->OpenUnits(spec));
  const auto stats = keeper.GetStats(dataset);
  ProgressBar bar("backup", "bytes");
  return OrFail(backup::CreateDatasetBackup(*reader, spec, blobs, stats.ok() ? stats->approximate_bytes : 0,
                                            ShowBytes(bar), bytes_per_s));
}

DatasetSpec RestoreDataset(const Globals& globals, const backup::Manifest& manifest, BlobStore& blobs,
                           const std::string& as, const std::string& backend) {
  if (!manifest.dataset) {
    throw Failure{absl::InvalidArgumentError("backup: it is not one of a dataset; restore it with --to DIR")};
  }
  const auto router = OpenHere(globals, /*create_if_missing=*/true);
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
  ProgressBar bar("restore", "bytes");
  OrFail(keeper.CreateDataset(spec, [&](const DatasetSpec& made, Backend& on) {
    auto endpoint = on.OpenForMigration(made);
    if (!endpoint.ok()) return endpoint.status();
    return backup::RestoreUnits(manifest, blobs, **endpoint, made, ShowBytes(bar));
  }));
  return OrFail(keeper.LoadEntry(spec.name)).spec;
}

}  // namespace kvstore::cli
