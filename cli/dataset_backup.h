#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "cli/command.h"
#include "kvstore_api/types.h"
#include "router/router.h"

/// Backups of one dataset, in units: kv backup create and restore with --dataset.
namespace kvstore::cli {

/// Backs up a dataset of a store that this process has open.
///
/// blobs, progress, bytes_per_s  As of CreateDatasetBackup, whose errors these are; NOT_FOUND if there is no
///                               such dataset.
absl::StatusOr<backup::Manifest> BackUpDataset(Router& router, const std::string& dataset, BlobStore& blobs,
                                               const Progress& progress, uint64_t bytes_per_s);

/// Restores a dataset into the store that was named. Returns the dataset as it is there. Throws Failure.
///
/// as       its name there; empty: that in the backup.
/// backend  where; empty: the backend of the name that it was on, or the default one if there is none.
DatasetSpec RestoreDataset(const Globals& globals, const backup::Manifest& manifest, BlobStore& blobs,
                           const std::string& as, const std::string& backend);

}  // namespace kvstore::cli
