#include "backup/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "backup/layout.h"

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

absl::StatusOr<std::string> NewestBackup(BlobStore& blobs) {
  auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  if (!list->live.empty()) return list->live.back();
  return absl::NotFoundError(fmt::format("there is no backup in {}", blobs.url()));
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
