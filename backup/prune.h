#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// The result of a prune.
struct Pruned {
  std::vector<std::string> removed;  ///< The backups that it has removed: they are listed no more.
  uint64_t deleted_objects = 0;      ///< With the segments of logs that no backup is followed by.
  uint64_t deleted_bytes = 0;
  uint64_t waiting_objects = 0;  ///< Objects that no backup needs, but that are kept until kGraceMs are over.
  uint64_t waiting_bytes = 0;
};

/// Removes all backups but the newest `keep`, and deletes the objects that no backup has needed for kGraceMs
/// (layout.h): what was removed now is deleted by a later prune. Until then, a backup that was removed can
/// still be restored by its ID. Any number of prunes may run at the same time, beside creates and restores.
///
/// keep  at least 1; INVALID_ARGUMENT otherwise.
///
/// If the manifest of a backup that is to be kept cannot be read, that error is returned, and nothing is
/// removed or deleted: it is not known what the backup needs, and the others may be the only good ones. If
/// that of one which was removed cannot be read, no object is deleted before its kGraceMs are over.
absl::StatusOr<Pruned> PruneBackups(BlobStore& blobs, size_t keep);

}  // namespace kvstore::backup
