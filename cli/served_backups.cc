#include "cli/served_backups.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "blobstore/open_blob_store.h"
#include "cli/backup_place.h"
#include "cli/dataset_backup.h"

namespace kvstore::cli {

Backups::Made MadeOf(const backup::Manifest& manifest, std::string url) {
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

absl::StatusOr<Backups::Made> ServedBackups::Make(const std::string& dataset, const Progress& progress) {
  const auto blobs = OpenOfDataset(OpenBlobStore(config_.to, config_.s3), dataset);
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
