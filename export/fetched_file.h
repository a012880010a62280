#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "blobstore/descriptor.h"

namespace kvstore::exports {

/// Returns a file with the bytes of a blob, which are compared with its size and checksum. It has no name,
/// lies in the folder of temporary files (TMPDIR), and is gone when it is closed.
///
/// expected  its size, and its checksum unless empty.
///
/// Errors as BlobStore::Read; RESOURCE_EXHAUSTED if the disk is full.
absl::StatusOr<Descriptor> FetchFile(BlobStore& blobs, std::string_view name, const BlobInfo& expected);

}  // namespace kvstore::exports
