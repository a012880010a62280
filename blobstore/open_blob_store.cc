#include "blobstore/open_blob_store.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "blobstore/folder_store.h"
#include "blobstore/s3_store.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobStore(std::string_view url, const S3Options& s3,
                                                         MissingFolder missing) {
  constexpr std::string_view kFile = "file:";
  if (url.starts_with(kFile) && url.size() > kFile.size()) {
    const std::filesystem::path folder = url.substr(kFile.size());
    std::error_code ignored;
    if (missing == MissingFolder::kRefuse && !std::filesystem::exists(folder, ignored)) {
      return absl::NotFoundError(fmt::format("{}: there is no such folder", folder.string()));
    }
    return OpenFolderStore(folder);
  }
  if (url.starts_with("s3://")) return OpenS3Store(url, s3);
  return absl::InvalidArgumentError(
      fmt::format("url '{}': it must be file:DIR, s3://BUCKET or s3://BUCKET/PREFIX", url.substr(0, 200)));
}

}  // namespace kvstore
