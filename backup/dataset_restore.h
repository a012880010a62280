#pragma once

#include "absl/status/status.h"
#include "backend_api/migration_endpoint.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// Fills a dataset that does not exist yet in its backend with what a backup of a dataset has
/// (CreateDatasetBackup), of whatever backend it was made. Files are compared with their checksums. Clients
/// are refused until the end; then the dataset serves. If this fails, nothing of it is left.
///
/// endpoint  of the dataset, absent.
/// spec      the dataset; of the shape of that in the backup. Objects get its type number in their IDs.
/// progress  told the bytes of files that were restored, and of all; may be null. Called by one thread at a
///           time.
///
/// DATA_LOSS if an object is missing or is not what was backed up; INVALID_ARGUMENT if a unit is on a shard
/// that is not open there.
absl::Status RestoreUnits(const Manifest& manifest, BlobStore& blobs, MigrationEndpoint& endpoint,
                          const DatasetSpec& spec, const Progress& progress = nullptr);

}  // namespace kvstore::backup
