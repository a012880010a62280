#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"

namespace kvstore::fleet_backup {

/// Writes the files of a server's backup to a folder, by mbstream. Each object is compared with its checksum
/// before any of it is used.
///
/// folder    must exist.
/// progress  told the bytes of objects that were extracted, and of all; may be null.
///
/// DATA_LOSS if an object is missing or damaged; INTERNAL if mbstream fails, with what it said.
absl::Status ExtractStream(const backup::Manifest& manifest, BlobStore& blobs,
                           const std::filesystem::path& folder, const Progress& progress);

/// Returns what processes shared in ZooKeeper, as the backup has it (catalog/shared_nodes.h). Errors as of
/// ExtractStream.
absl::StatusOr<std::string> ReadNodesFile(const backup::Manifest& manifest, BlobStore& blobs);

}  // namespace kvstore::fleet_backup
