#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "assembly/backup_config.h"
#include "backend_api/backups.h"
#include "backup/create.h"
#include "backup/schedule.h"
#include "base/mutex.h"
#include "blobstore/blob_store.h"
#include "router/router.h"

namespace kvstore::cli {

/// Returns what the operators are told of a backup.
///
/// url  of the store of backups in which it is.
BackupMaker::Made MadeOf(const backup::Manifest& manifest, std::string url);

/// The backups that a server makes, lists and verifies when it is told to, beside those of its schedule.
class ServedBackups : public Backups {
 public:
  /// All must outlive this.
  ///
  /// checkpoint  of the embedded engine, or the error with which backups of the whole store are refused.
  /// schedule    Null: no backup is made from time to time.
  ServedBackups(Router& router, const BackupConfig& config,
                absl::StatusOr<backup::CheckpointMaker> checkpoint, backup::Schedule* schedule)
      : router_(router), config_(config), checkpoint_(std::move(checkpoint)), schedule_(schedule) {}

  absl::StatusOr<Made> CreateBackup(std::string_view dataset, const Progress& progress) override;
  absl::StatusOr<Listed> ListBackups(std::string_view dataset, size_t limit) override;
  absl::StatusOr<Verified> VerifyBackup(std::string_view dataset, std::string_view id, bool deep,
                                        const Progress& progress) override;

 private:
  absl::StatusOr<std::unique_ptr<BlobStore>> Open(const std::string& dataset) const;
  absl::StatusOr<Made> Make(const std::string& dataset, const Progress& progress);
  absl::StatusOr<Verified> Verify(const std::string& dataset, std::string id, bool deep,
                                  const Progress& progress) const;

  Router& router_;
  const BackupConfig& config_;
  const absl::StatusOr<backup::CheckpointMaker> checkpoint_;
  backup::Schedule* const schedule_;
  Mutex mutex_;
  std::set<std::string> making_ ABSL_GUARDED_BY(mutex_);  // datasets; empty: the whole store
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;          // a backup is verified deeply
};

}  // namespace kvstore::cli
