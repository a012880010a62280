#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "blobstore/blob_store.h"
#include "blobstore/s3_client.h"

namespace kvstore::s3 {

/// Reads a blob piece by piece, several at a time; see BlobStore::Read. A piece that is cut off goes on where
/// it was, so no byte is given to `sink` twice.
absl::Status ReadPieces(S3Client& client, std::string_view name, const BlobInfo& expected,
                        const BlobSink& sink);

}  // namespace kvstore::s3
