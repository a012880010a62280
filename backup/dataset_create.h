#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// Makes a backup of one dataset in units, whatever backend it is on, while it serves: reads a snapshot, its
/// partitions in parallel, sends what the destination lacks, and puts the manifest last. The other promises
/// of CreateBackup (create.h) hold for it, too.
///
/// Files are cut at units whose keys say so, so that a change is in one file, and those around it are what
/// they were.
///
/// blobs        the store of this dataset's backups alone.
/// bytes_per_s  how many bytes of units are read in a second at most; 0: no limit.
/// total_bytes  an estimate of all bytes of units, for `progress`.
///
/// Errors are those of the snapshot (unit_reader.h) and of the destination.
absl::StatusOr<Manifest> CreateDatasetBackup(UnitReader& reader, const DatasetSpec& spec, BlobStore& blobs,
                                             uint64_t total_bytes = 0, const Progress& progress = nullptr,
                                             uint64_t bytes_per_s = 0);

}  // namespace kvstore::backup
