#pragma once

#include <string>

#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "cli/command.h"

/// Backups of one dataset, in units: kv backup create and restore with --dataset.
namespace kvstore::cli {

/// Backs up a dataset of the store that was named. Throws Failure.
///
/// blobs  the store of its backups.
backup::Manifest BackUpDataset(const Globals& globals, const std::string& dataset, BlobStore& blobs,
                               uint64_t bytes_per_s);

/// Restores a dataset into the store that was named. Returns the dataset as it is there. Throws Failure.
///
/// as       its name there; empty: that in the backup.
/// backend  where; empty: the backend of the name that it was on, or the default one if there is none.
DatasetSpec RestoreDataset(const Globals& globals, const backup::Manifest& manifest, BlobStore& blobs,
                           const std::string& as, const std::string& backend);

}  // namespace kvstore::cli
