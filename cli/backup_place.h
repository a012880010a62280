#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "assembly/open_router.h"
#include "backend_api/write_log.h"
#include "backup/create.h"
#include "blobstore/blob_store.h"
#include "blobstore/open_blob_store.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "fleet_backup/pair_backups.h"
#include "kvstore_api/types.h"

/// Where backups come from and where they go, for the commands and for the server.
namespace kvstore::cli {

/// Returns how checkpoints of the store's embedded engine are made, with its catalog, be that in ZooKeeper or
/// not. The router must outlive the function. INVALID_ARGUMENT if the store has no embedded engine.
absl::StatusOr<backup::CheckpointMaker> CheckpointsOf(Router& router, const OpenOptions& options);
/// Returns the log of that engine, with its catalog. The same holds for it.
absl::StatusOr<std::unique_ptr<WriteLog>> LogOf(Router& router, const OpenOptions& options);

/// Returns how the store of backups is opened that a URL names or, if it is empty, that the configuration
/// does. Throws Failure if neither does.
///
/// option   the option that the URL was given with, for messages.
/// missing  for OpenBlobStore.
fleet_backup::BlobOpener BackupOpener(const Globals& globals, const std::string& url,
                                      const std::string& option, MissingFolder missing);
/// Opens that store. Throws Failure.
///
/// dataset  opens the store of this dataset's backups in it (OpenOfDataset); empty: that of whole stores.
std::unique_ptr<BlobStore> OpenBackups(const Globals& globals, const std::string& url,
                                       const std::string& option, const std::string& dataset,
                                       MissingFolder missing);

/// Opens the store of a dataset's backups in that of a whole store's: the blobs below datasets/DATASET/.
///
/// dataset  INVALID_ARGUMENT if it is no name of one; empty: returns the store of whole stores' backups.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenOfDataset(absl::StatusOr<std::unique_ptr<BlobStore>> blobs,
                                                         const std::string& dataset);

/// "12.3 MiB"
std::string SizeText(uint64_t bytes);
/// Shows the progress of a command that works on bytes. The bar must outlive the function.
Progress ShowBytes(ProgressBar& bar);

}  // namespace kvstore::cli
