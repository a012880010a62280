#pragma once

#include <memory>
#include <string>

#include "assembly/open_router.h"
#include "backup/create.h"
#include "blobstore/blob_store.h"
#include "cli/command.h"

/// Where backups come from and where they go, for the commands and for the server.
namespace kvstore::cli {

/// Returns how checkpoints of the store's embedded engine are made. The router must outlive the function.
/// INVALID_ARGUMENT if the store has no embedded engine; FAILED_PRECONDITION if its catalog is in ZooKeeper.
absl::StatusOr<backup::CheckpointMaker> CheckpointsOf(Router& router, const OpenOptions& options);

/// Opens the store of backups that a URL names or, if it is empty, that the configuration does. Throws
/// Failure.
///
/// option  the option that the URL was given with, for messages.
std::unique_ptr<BlobStore> OpenBackups(const Globals& globals, const std::string& url,
                                       const std::string& option);

}  // namespace kvstore::cli
