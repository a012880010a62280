#pragma once

#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "blobstore/blob_store.h"

namespace kvstore {

/// Opens the store in a folder; see OpenBlobStore. A blob is a file of the same name, mode 0600, in folders
/// of mode 0700. Blobs that are being put are in the folder ".new"; those that a process left there when it
/// was killed are removed. Links in the folder are not followed.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenFolderStore(const std::filesystem::path& folder);

}  // namespace kvstore
