#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"

/// The folder that a restore writes. Until the restore has ended it has a file RESTORING, by which neither a
/// store nor another restore takes it for what it is not yet.
namespace kvstore::backup {

/// Makes the folder, for its owner alone, or checks that it is empty, and puts the mark into it.
///
/// bytes  RESOURCE_EXHAUSTED if the disk has less space.
/// what   For people who find the mark.
///
/// FAILED_PRECONDITION if the folder is not empty, a store, or that of another restore.
absl::Status BeginRestoreFolder(const std::filesystem::path& folder, uint64_t bytes, const std::string& what);
/// Removes the mark.
void EndRestoreFolder(const std::filesystem::path& folder);

/// Makes the names of the files in a folder durable.
absl::Status SyncFolder(const std::filesystem::path& folder);

/// Returns the path of a folder without a slash at its end.
std::filesystem::path FolderPath(const std::filesystem::path& folder);

}  // namespace kvstore::backup
