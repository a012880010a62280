#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// How much of a backup is looked at.
enum class VerifyDepth : uint8_t {
  kObjects = 1,  ///< All objects are there, with their sizes.
  kSchema = 2,   ///< As before, and the files that say what is in the store are read and decoded.
  kBytes = 3,    ///< As before, and every object is read and compared with its checksum.
};

/// The result of a verification.
struct Verified {
  uint64_t objects = 0;               ///< Objects that were looked at.
  uint64_t read_bytes = 0;            ///< Bytes that were read and compared.
  std::vector<std::string> datasets;  ///< The datasets in the catalog of the backup; from kSchema on.
  std::vector<std::string> problems;  ///< One line each; empty: the backup is whole, as far as was looked.
};

/// Verifies a backup. An error means that it could not be verified; what is wrong with the backup itself is
/// in `problems`.
///
/// progress  told the bytes that were read, and of all, at depth kBytes; may be null. Called by one thread at
///           a time.
absl::StatusOr<Verified> VerifyBackup(const Manifest& manifest, BlobStore& blobs, VerifyDepth depth,
                                      const Progress& progress = nullptr);

}  // namespace kvstore::backup
