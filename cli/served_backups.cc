#include "cli/served_backups.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "backup/list.h"
#include "backup/log_verify.h"
#include "backup/verify.h"
#include "blobstore/open_blob_store.h"
#include "cli/backup_place.h"
#include "cli/dataset_backup.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::cli {

BackupMaker::Made MadeOf(const backup::Manifest& manifest, std::string url) {
  return {.id = manifest.id,
          .url = std::move(url),
          .began_ms = manifest.began_ms,
          .finished_ms = manifest.finished_ms,
          .bytes = manifest.TotalBytes(),
          .files = manifest.files.size(),
          .units = manifest.dataset ? manifest.dataset->units : 0,
          .sent_bytes = manifest.sent_bytes,
          .sent_objects = manifest.sent_objects};
}

absl::StatusOr<Backups::Made> ServedBackups::CreateBackup(std::string_view dataset,
                                                          const Progress& progress) {
  const std::string name(dataset);
  {
    const MutexLock lock(mutex_);
    if (!making_.insert(name).second) {
      return absl::FailedPreconditionError(fmt::format(
          "this server is making a backup of {} for another caller; try again when that has ended",
          name.empty() ? "the store" : "dataset '" + name + "'"));
    }
  }
  auto made = Make(name, progress);
  if (made.ok() && !name.empty()) {
    spdlog::info("backup {} of dataset {}: {} bytes, of which {} were sent", made->id, name, made->bytes,
                 made->sent_bytes);
  }
  const MutexLock lock(mutex_);
  making_.erase(name);
  return made;
}

absl::StatusOr<Backups::Listed> ServedBackups::ListBackups(std::string_view dataset, size_t limit) {
  const auto blobs = Open(std::string(dataset));
  if (!blobs.ok()) return blobs.status();
  const auto list = backup::ListBackups(**blobs);
  if (!list.ok()) return list.status();
  Listed listed{.url = (*blobs)->url()};
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    if (listed.backups.size() + listed.unreadable.size() == limit) {
      listed.more = true;
      break;
    }
    if (auto status = CheckCall(); !status.ok()) return status;
    const auto manifest = backup::ReadManifest(**blobs, *id);
    if (absl::IsNotFound(manifest.status())) continue;  // pruned meanwhile
    if (absl::IsDataLoss(manifest.status()) || absl::IsFailedPrecondition(manifest.status())) {
      listed.unreadable.push_back(*id);  // the others are as good as before
      continue;
    }
    if (!manifest.ok()) return manifest.status();
    listed.backups.push_back(MadeOf(*manifest, listed.url));
  }
  return listed;
}

absl::StatusOr<Backups::Verified> ServedBackups::VerifyBackup(std::string_view dataset, std::string_view id,
                                                              bool deep, const Progress& progress) {
  if (deep) {
    const MutexLock lock(mutex_);
    if (std::exchange(reading_, true)) {
      return absl::FailedPreconditionError(
          "this server is reading a backup for another caller; try again when that has ended");
    }
  }
  auto verified = Verify(std::string(dataset), std::string(id), deep, progress);
  if (deep) {
    const MutexLock lock(mutex_);
    reading_ = false;
  }
  return verified;
}

absl::StatusOr<Backups::Verified> ServedBackups::Verify(const std::string& dataset, std::string id, bool deep,
                                                        const Progress& progress) const {
  const auto blobs = Open(dataset);
  if (!blobs.ok()) return blobs.status();
  if (id.empty()) {
    auto newest = backup::NewestBackup(**blobs);
    if (!newest.ok()) return newest.status();
    id = *std::move(newest);
  }
  const auto manifest = backup::ReadManifest(**blobs, id);
  if (!manifest.ok()) return manifest.status();
  const auto depth = deep ? backup::VerifyDepth::kBytes : backup::VerifyDepth::kSchema;
  auto found = backup::VerifyBackup(*manifest, **blobs, depth, progress);
  if (!found.ok()) return found.status();
  if (auto status = backup::VerifyLogChain(*manifest, **blobs, depth, *found); !status.ok()) return status;
  return Verified{.id = std::move(id),
                  .objects = found->objects,
                  .read_bytes = found->read_bytes,
                  .problems = std::move(found->problems)};
}

absl::StatusOr<std::unique_ptr<BlobStore>> ServedBackups::Open(const std::string& dataset) const {
  return OpenOfDataset(OpenBlobStore(config_.to, config_.s3), dataset);
}

absl::StatusOr<Backups::Made> ServedBackups::Make(const std::string& dataset, const Progress& progress) {
  const auto blobs = Open(dataset);
  if (!blobs.ok()) return blobs.status();
  absl::StatusOr<backup::Manifest> manifest;
  if (!dataset.empty()) {
    manifest = BackUpDataset(router_, dataset, **blobs, progress, config_.bytes_per_s);
  } else if (schedule_ != nullptr) {
    // A caller that waited for the end of another backup would hold a worker of the server for hours.
    manifest = schedule_->MakeNow(**blobs, progress, backup::Schedule::WhenBusy::kRefuse);
  } else if (checkpoint_.ok()) {
    manifest = backup::CreateBackup(*checkpoint_, **blobs, progress, config_.bytes_per_s);
  } else {
    return checkpoint_.status();
  }
  if (!manifest.ok()) return manifest.status();
  return MadeOf(*manifest, (*blobs)->url());
}

}  // namespace kvstore::cli
