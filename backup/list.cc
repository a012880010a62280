#include "backup/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backup/layout.h"
#include "base/clock.h"
#include "base/fail_point.h"

namespace kvstore::backup {

absl::StatusOr<std::vector<BlobEntry>> ListAll(BlobStore& blobs, std::string_view prefix) {
  constexpr size_t kPage = 1000;
  std::vector<BlobEntry> all;
  std::string after;
  do {
    auto page = blobs.List(prefix, after, kPage);
    if (!page.ok()) return page.status();
    std::move(page->blobs.begin(), page->blobs.end(), std::back_inserter(all));
    after = std::move(page->next);
  } while (!after.empty());
  return all;
}

absl::StatusOr<BackupList> ListBackups(BlobStore& blobs) {
  // The manifests first: a backup that is removed between the two lists is then known as removed.
  const auto manifests = ListAll(blobs, kManifestPrefix);
  if (!manifests.ok()) return manifests.status();
  const auto removed = ListAll(blobs, kRemovedPrefix);
  if (!removed.ok()) return removed.status();
  BackupList list;
  for (const BlobEntry& mark : *removed) {
    std::string id = mark.name.substr(kRemovedPrefix.size());
    if (CheckBackupId(id).ok()) list.removed.emplace(std::move(id), mark.modified_ms);
  }
  for (const BlobEntry& manifest : *manifests) {
    std::string id(IdOfManifest(manifest.name));
    if (!id.empty() && !list.removed.contains(id)) list.live.push_back(std::move(id));
  }
  std::sort(list.live.begin(), list.live.end());
  return list;
}

std::string WhyNone(BlobStore& blobs) {
  const std::string url = blobs.url();
  if (const auto any = blobs.List("", "", 1); any.ok() && any->blobs.empty()) {
    return fmt::format("there is no backup in {}, nor anything else: is that the place?", url);
  }
  // The names of folders: what follows one of them is skipped, since its blobs may be many.
  constexpr size_t kMostNamed = 5;
  const auto below = [&](std::string_view folder) {
    std::vector<std::string> names;
    std::string after;
    while (names.size() < kMostNamed) {
      const auto page = blobs.List(folder, after, 1);
      if (!page.ok() || page->blobs.empty()) break;
      const std::string& blob = page->blobs[0].name;
      names.push_back(blob.substr(folder.size(), blob.find('/', folder.size()) - folder.size()));
      // '0' sorts right after '/'.
      after = fmt::format("{}{}0", folder, names.back());
    }
    return names;
  };
  std::string others;
  if (const auto datasets = below("datasets/"); !datasets.empty()) {
    others +=
        fmt::format("; it has backups of datasets alone: --dataset {}", fmt::join(datasets, ", --dataset "));
  }
  if (!below("pairs/").empty()) {
    others += "; it has backups of MySQL servers: kv backup list --fleet";
  }
  return fmt::format("there is no backup of a whole store in {}{}", url, others);
}

absl::StatusOr<std::string> NewestBackup(BlobStore& blobs) {
  auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  if (!list->live.empty()) return list->live.back();
  return absl::NotFoundError(WhyNone(blobs));
}

absl::Status PutManifest(BlobStore& blobs, Manifest& manifest, std::chrono::steady_clock::time_point began) {
  // The wall clock may be set back meanwhile; the other one stands still while the machine sleeps.
  manifest.finished_ms =
      std::max(WallClockMs(), manifest.began_ms + Milliseconds(std::chrono::steady_clock::now() - began));
  if (manifest.finished_ms > manifest.began_ms + kMaxCreateMs) {
    return absl::DeadlineExceededError(fmt::format(
        "the backup took longer than {} hours, so a prune may have deleted objects that it found at its "
        "beginning; it is not kept. Try again: what was sent in the last {} hours is not sent again",
        kMaxCreateMs / kHourMs, kReuseMs / kHourMs));
  }
  const std::string text = EncodeManifest(manifest);
  if (text.size() > kBlobPieceBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("the manifest of {} files has {} bytes; at most {} are allowed", manifest.files.size(),
                    text.size(), kBlobPieceBytes));
  }
  if (const auto read = DecodeManifest(text, manifest.id); !read.ok()) {
    return absl::InternalError(fmt::format("the manifest could not be read again, so it is not put: {}",
                                           std::string(read.status().message())));
  }
  Reached("backup-manifest");
  const auto put = blobs.Put(ManifestBlob(manifest.id), text, PutMode::kIfAbsent);
  return put.status();
}

absl::StatusOr<Manifest> ReadManifest(BlobStore& blobs, std::string_view id) {
  if (auto status = CheckBackupId(id); !status.ok()) return status;
  const auto text = blobs.Get(ManifestBlob(id), kBlobPieceBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        fmt::format("there is no backup {} in {}; kv backup list --from {} shows those that there are", id,
                    blobs.url(), blobs.url()));
  }
  if (!text.ok()) return text.status();
  return DecodeManifest(*text, id);
}

}  // namespace kvstore::backup
