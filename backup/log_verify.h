#pragma once

#include "absl/status/status.h"
#include "backup/manifest.h"
#include "backup/verify.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// Adds to what was found in a backup of an embedded store what is wrong with the log that follows it
/// (log_segment.h), from the first segment on that the backup needs: segments that are missing and, at depth
/// kBytes, those that are damaged or do not follow the one before. A backup that no log follows has no
/// problem, nor has one of another kind. An error means that the log could not be verified.
absl::Status VerifyLogChain(const Manifest& manifest, BlobStore& blobs, VerifyDepth depth,
                            Verified& verified);

}  // namespace kvstore::backup
