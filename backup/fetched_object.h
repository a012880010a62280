#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// Reads the object of a file of a backup into memory.
///
/// max_bytes  How many bytes a file of its kind can have. The size is what the manifest says, which anybody
///            may have written, so no memory is taken for more.
///
/// DATA_LOSS, with the name of the object, if it is missing or damaged, or larger than such a file can be.
absl::StatusOr<std::string> FetchObject(BlobStore& blobs, const BackedUpFile& file, uint64_t max_bytes);

}  // namespace kvstore::backup
