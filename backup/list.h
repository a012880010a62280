#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// The backups of a store of backups, by their manifests. Objects are not looked at.
struct BackupList {
  std::vector<std::string> live;  ///< The IDs of the backups that there are, oldest first.
  /// The backups that were removed: their IDs, and when that was by the store's clock, in ms since 1970.
  /// Their manifests are there as long as their objects may be.
  std::map<std::string, uint64_t> removed;
};

/// Lists the backups. A backup without a manifest, whose create did not end, is not listed.
absl::StatusOr<BackupList> ListBackups(BlobStore& blobs);

/// Returns why a store of backups has no backup of a whole store, for somebody who expected one: that there
/// is nothing at all, or that it has backups of datasets or of MySQL servers alone.
std::string WhyNone(BlobStore& blobs);

/// Returns the ID of the newest backup. NOT_FOUND if there is none, with WhyNone.
absl::StatusOr<std::string> NewestBackup(BlobStore& blobs);

/// Reads the manifest of a backup. NOT_FOUND if there is none of that ID; others as DecodeManifest.
absl::StatusOr<Manifest> ReadManifest(BlobStore& blobs, std::string_view id);

/// Puts the manifest of a backup whose objects are all there, and sets when it was finished. From then on the
/// backup is there.
///
/// began  when the create began, which may take kMaxCreateMs (layout.h); DEADLINE_EXCEEDED if it took longer.
absl::Status PutManifest(BlobStore& blobs, Manifest& manifest, std::chrono::steady_clock::time_point began);

/// Lists all blobs whose names begin with a prefix.
absl::StatusOr<std::vector<BlobEntry>> ListAll(BlobStore& blobs, std::string_view prefix);

}  // namespace kvstore::backup
