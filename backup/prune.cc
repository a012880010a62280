#include "backup/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/log_prune.h"
#include "backup/manifest.h"
#include "backup/parallel.h"
#include "base/clock.h"
#include "base/fail_point.h"

namespace kvstore::backup {
namespace {

using Names = std::set<std::string, std::less<>>;

/// Marks the backups as removed, and adds them to those that the list has as removed.
absl::Status Remove(BlobStore& blobs, const std::vector<std::string>& ids, uint64_t now_ms, BackupList& list,
                    Pruned& pruned) {
  for (const std::string& id : ids) {
    Reached("prune-remove");
    const auto put = blobs.Put(RemovedBlob(id), "", PutMode::kIfAbsent);
    // Another prune may have been first.
    if (!put.ok() && !absl::IsAlreadyExists(put.status())) return put.status();
    if (put.ok()) pruned.removed.push_back(id);
    list.removed.emplace(id, now_ms);
  }
  return absl::OkStatus();
}

/// Takes all but the newest `keep` backups out of the list, and returns them.
std::vector<std::string> TakeOldest(size_t keep, BackupList& list) {
  const auto end = list.live.end() - static_cast<std::ptrdiff_t>(std::min(keep, list.live.size()));
  std::vector<std::string> oldest(list.live.begin(), end);
  list.live.erase(list.live.begin(), end);
  return oldest;
}

bool IsOver(uint64_t since_ms, uint64_t now_ms) { return since_ms + kGraceMs <= now_ms; }

/// Adds the objects of a backup to those that are needed.
absl::Status AddNeeded(BlobStore& blobs, const std::string& id, Names& needed) {
  auto manifest = ReadManifest(blobs, id);
  if (!manifest.ok()) return manifest.status();
  for (BackedUpFile& file : manifest->files) needed.insert(std::move(file.blob));
  return absl::OkStatus();
}

/// The objects that must not be deleted.
struct Needed {
  Names live;            // by backups that there are
  Names removed;         // by those that were removed a short time ago
  bool unknown = false;  // whether it cannot be read what one of these needs
};

/// Whether a backup that was listed is there no more: another prune, which had removed it long ago, has
/// deleted its manifest and its mark since.
absl::StatusOr<bool> IsGone(BlobStore& blobs, const std::string& id) {
  const auto manifests = ListAll(blobs, ManifestBlob(id));
  if (!manifests.ok()) return manifests.status();
  return manifests->empty();
}

absl::Status FindLive(BlobStore& blobs, const BackupList& list, Needed& needed) {
  for (const std::string& id : list.live) {
    absl::Status added = AddNeeded(blobs, id, needed.live);
    if (absl::IsNotFound(added)) {
      const auto is_gone = IsGone(blobs, id);
      if (!is_gone.ok()) return is_gone.status();
      if (*is_gone) continue;
    }
    if (added.ok()) continue;
    return absl::Status(
        added.code(),
        fmt::format("{}; no backup was removed and no object was deleted, because it is not known what the "
                    "backup {} needs",
                    std::string(added.message()), id));
  }
  return absl::OkStatus();
}

absl::Status FindRemoved(BlobStore& blobs, const BackupList& list, uint64_t now_ms, Needed& needed) {
  for (const auto& [id, removed_ms] : list.removed) {
    if (IsOver(removed_ms, now_ms)) continue;
    // A create may have found objects by this manifest before it was removed, and before it was damaged.
    absl::Status added = AddNeeded(blobs, id, needed.removed);
    needed.unknown = needed.unknown || absl::IsDataLoss(added);
    if (!added.ok() && !absl::IsNotFound(added) && !absl::IsDataLoss(added)) return added;
  }
  return absl::OkStatus();
}

absl::Status DeleteObjects(BlobStore& blobs, const Needed& needed, uint64_t now_ms, Pruned& pruned) {
  const auto objects = ListAll(blobs, kObjectPrefix);
  if (!objects.ok()) return objects.status();
  std::vector<const BlobEntry*> over;
  for (const BlobEntry& object : *objects) {
    if (needed.live.contains(object.name)) continue;
    if (!needed.unknown && !needed.removed.contains(object.name) && IsOver(object.modified_ms, now_ms)) {
      over.push_back(&object);
    } else {
      ++pruned.waiting_objects;
      pruned.waiting_bytes += object.size;
    }
  }
  absl::Status deleted = InParallel(over.size(), kDeleted, [&](size_t i) {
    Reached("prune-object");
    return blobs.Delete(over[i]->name);
  });
  if (!deleted.ok()) return deleted;
  for (const BlobEntry* object : over) {
    ++pruned.deleted_objects;
    pruned.deleted_bytes += object->size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pruned> PruneBackups(BlobStore& blobs, size_t keep) {
  if (keep < 1) return absl::InvalidArgumentError("keep: at least one backup must be kept");
  Pruned pruned;
  // Taken before anything is listed, so that a backup whose objects are as old as this was listed.
  const uint64_t now_ms = WallClockMs();
  auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  const std::vector<std::string> oldest = TakeOldest(keep, *list);
  Needed needed;
  if (auto status = FindLive(blobs, *list, needed); !status.ok()) return status;
  if (auto status = Remove(blobs, oldest, now_ms, *list, pruned); !status.ok()) return status;
  if (auto status = FindRemoved(blobs, *list, now_ms, needed); !status.ok()) return status;
  if (auto status = DeleteObjects(blobs, needed, now_ms, pruned); !status.ok()) return status;
  std::set<std::string> followed(list->live.begin(), list->live.end());
  for (const auto& [id, removed_ms] : list->removed) {
    if (!IsOver(removed_ms, now_ms)) followed.insert(id);
  }
  const auto log = PruneLog(blobs, followed, now_ms);
  if (!log.ok()) return log.status();
  pruned.deleted_objects += log->segments;
  pruned.deleted_bytes += log->bytes;
  // Last, so that a prune which is cut short before leaves the marks that say what is to be deleted.
  for (const auto& [id, removed_ms] : list->removed) {
    if (!IsOver(removed_ms, now_ms)) continue;
    Reached("prune-manifest");
    if (auto status = blobs.Delete(ManifestBlob(id)); !status.ok()) return status;
    if (auto status = blobs.Delete(RemovedBlob(id)); !status.ok()) return status;
  }
  return pruned;
}

}  // namespace kvstore::backup
