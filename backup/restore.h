#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// Changes what was restored before it is a store, in its folder.
using BeforeOpen = std::function<absl::Status(const std::filesystem::path& folder)>;

/// Restores a backup into a folder, which can then be opened as a store. Every file is compared with its
/// checksum and synced; the file that marks the folder as a store is written last, so that what a restore
/// leaves that is killed is not taken for one. A restore that fails removes what it has written. Lists
/// nothing.
///
/// folder    Must not exist, or be empty; FAILED_PRECONDITION otherwise. It is created for its owner alone.
/// progress  told the bytes that were written, and of all; may be null. Called by one thread at a time.
///
/// before_open  called once all files are there; its error ends the restore. May be null.
///
/// INVALID_ARGUMENT for a backup of a dataset (dataset_restore.h) or of a MySQL server. DATA_LOSS if an
/// object is missing or is not what was backed up; RESOURCE_EXHAUSTED if the disk has too little space.
absl::Status RestoreBackup(const Manifest& manifest, BlobStore& blobs, const std::filesystem::path& folder,
                           const Progress& progress = nullptr, const BeforeOpen& before_open = nullptr);

}  // namespace kvstore::backup
