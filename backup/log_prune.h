#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// The segments that PruneLog has deleted.
struct PrunedLog {
  uint64_t segments = 0;
  uint64_t bytes = 0;
};

/// Deletes the chains of segments that no backup is followed by any more (log_segment.h), and that were put
/// at least kGraceMs ago (layout.h): a backup may have been made since `needed` was listed.
///
/// needed  The IDs of all backups that there are, or that were removed a short time ago.
absl::StatusOr<PrunedLog> PruneLog(BlobStore& blobs, const std::set<std::string>& needed, uint64_t now_ms);

}  // namespace kvstore::backup
