#include "blobstore/open_blob_store.h"

#include <fmt/format.h>

#include "blobstore/folder_store.h"
#include "blobstore/s3_store.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobStore(std::string_view url, const S3Options& s3) {
  constexpr std::string_view kFile = "file:";
  if (url.starts_with(kFile) && url.size() > kFile.size()) return OpenFolderStore(url.substr(kFile.size()));
  if (url.starts_with("s3://")) return OpenS3Store(url, s3);
  return absl::InvalidArgumentError(
      fmt::format("url '{}': it must be file:DIR, s3://BUCKET or s3://BUCKET/PREFIX", url.substr(0, 200)));
}

}  // namespace kvstore
