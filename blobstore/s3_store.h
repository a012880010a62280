#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "blobstore/s3_options.h"

namespace kvstore {

/// Opens the store in a bucket of S3; see OpenBlobStore.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenS3Store(std::string_view url, const S3Options& options);

}  // namespace kvstore
