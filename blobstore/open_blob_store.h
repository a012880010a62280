#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"
#include "blobstore/s3_options.h"

namespace kvstore {

/// Says what is done if the folder of a store does not exist.
enum class MissingFolder {
  kCreate,  ///< It is created for its owner alone (mode 0700); the folder above it must exist.
  kRefuse,  ///< NOT_FOUND.
};

/// Opens the store of a URL. Nothing is sent over the network yet.
///
/// url      "file:DIR", a folder; or "s3://BUCKET" or "s3://BUCKET/PREFIX", a bucket, which must exist; the
///          names of all objects then begin with PREFIX/, which follows the rules of blobs' names.
///          INVALID_ARGUMENT otherwise.
/// s3       How to reach the bucket; not looked at for a folder.
/// missing  Not looked at for a bucket.
///
/// FAILED_PRECONDITION if there are no credentials or others can read their file; NOT_FOUND,
/// PERMISSION_DENIED or UNAVAILABLE if the folder or that file cannot be opened.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobStore(std::string_view url, const S3Options& s3 = {},
                                                         MissingFolder missing = MissingFolder::kCreate);

}  // namespace kvstore
