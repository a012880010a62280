#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backend_api/write_log.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

/// Restoring a store as it was at a time: the last backup before it, and the log that follows
/// (log_shipper.h).
namespace kvstore::backup {

/// The newest backup that can be read and was finished by a time.
struct BackupBefore {
  Manifest manifest;
  /// The error of the newest later backup that cannot be read; empty if there is none.
  std::string problem;
};

/// Returns the newest backup that can be read and was finished by a time, in ms since 1970. If there is none,
/// the error of the newest one that cannot be read, or else NOT_FOUND.
absl::StatusOr<BackupBefore> FindBackupBefore(BlobStore& blobs, uint64_t at_ms);

/// The result of a replay.
struct Replayed {
  /// All that was written until then is there, and nothing that was written later.
  uint64_t as_of_ms = 0;
  uint64_t writes = 0;
  uint64_t segments = 0;
  bool at_end = false;  ///< The log that was sent ends there.
};

/// Opens a store that was restored, to carry out writes again.
using ReplayOpener =
    std::function<absl::StatusOr<std::unique_ptr<WriteReplay>>(const std::filesystem::path& folder)>;

/// Carries out the writes that the log has after a backup, up to a time, in a folder in which the backup was
/// restored and that is no store yet (RestoreBackup). Without a log of that backup, it does nothing.
///
/// DATA_LOSS if a segment is missing or damaged.
absl::StatusOr<Replayed> ReplayLog(const Manifest& base, BlobStore& blobs, uint64_t at_ms,
                                   const std::filesystem::path& folder, const ReplayOpener& open);

}  // namespace kvstore::backup
