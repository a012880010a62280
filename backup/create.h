#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "backend_api/checkpoint.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// Makes a checkpoint of the store that is to be backed up (Backend::MakeCheckpoint).
using CheckpointMaker = std::function<absl::StatusOr<std::unique_ptr<Checkpoint>>()>;

/// Makes a backup: takes a checkpoint, sends what the destination lacks of it, and puts the manifest last.
/// Until then there is no backup: what a create that was cut short has sent is used by the next one that
/// begins within kReuseMs, and pruned later.
///
/// Any number of creates may run at the same time, beside prunes. Objects that are there are not read, and
/// are trusted to have the size that the destination lists; Verify reads them.
///
/// progress  told the bytes that are in the destination, and of all; may be null. Called by one thread at a
///           time.
/// bytes_per_s  how many bytes of the store's files are read in a second at most, to be sent or to be
/// compared;
///           0: no limit.
///
/// Returns the manifest. Errors are those of the checkpoint and of the destination; DEADLINE_EXCEEDED if it
/// took longer than kMaxCreateMs (layout.h).
absl::StatusOr<Manifest> CreateBackup(const CheckpointMaker& checkpoint, BlobStore& blobs,
                                      const Progress& progress = nullptr, uint64_t bytes_per_s = 0);

}  // namespace kvstore::backup
