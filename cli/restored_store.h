#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "backup/log_restore.h"
#include "backup/manifest.h"
#include "base/temporary_folder.h"
#include "blobstore/blob_store.h"
#include "cli/backup_source.h"
#include "cli/command.h"
#include "router/router.h"

/// The parts that the commands which restore a whole store share.
namespace kvstore::cli {

/// Reads the manifest of the backup to restore: the one that was named, or the newest one; with a time, the
/// newest one that was finished by then. Throws Failure.
///
/// at_ms  0: no time was given.
backup::Manifest ChooseBackup(BackupSource& source, BlobStore& blobs, uint64_t at_ms);

/// Restores a backup of a store into a new folder and, unless `at_ms` is 0, replays the log after it up to
/// that time. Shows its progress. Throws Failure.
backup::Replayed RestoreFolder(const backup::Manifest& manifest, BlobStore& blobs, uint64_t at_ms,
                               const std::filesystem::path& to);

/// A store that was restored to be read, in a temporary folder (kv-restored-??????).
class RestoredStore {
 public:
  /// Restores a backup of a whole store, with what the configuration says of its embedded engine, and opens
  /// it. Throws Failure.
  RestoredStore(const Globals& globals, BackupSource& source, uint64_t at_ms);
  ~RestoredStore();
  RestoredStore(const RestoredStore&) = delete;
  RestoredStore& operator=(const RestoredStore&) = delete;

  Router& router() { return *router_; }
  /// The time as of which the store is.
  uint64_t as_of_ms() const { return as_of_ms_; }

 private:
  const std::unique_ptr<TemporaryFolder> folder_;
  uint64_t as_of_ms_ = 0;
  std::unique_ptr<Router> router_;
};

}  // namespace kvstore::cli
