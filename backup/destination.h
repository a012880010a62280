#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// The objects that a store of backups had when a create looked: they need not be sent again. layout.h says
/// on which of them a create may rely. A value; reads may run in parallel.
class Destination {
 public:
  /// Looks at the store, and reads the newest backup that can be read, so that a damaged one does not keep
  /// others from being made.
  ///
  /// now_ms  when the create began.
  static absl::StatusOr<Destination> LookAt(BlobStore& blobs, uint64_t now_ms);

  /// The ID of the newest backup, whether it can be read or not; empty if there is none.
  const std::string& newest() const { return newest_; }

  /// The file of the newest backup that has these bytes, which a create may use; null if there is none, or if
  /// the object is gone.
  ///
  /// identity  What identifies the bytes (layout.h).
  const BackedUpFile* Kept(std::string_view identity, uint64_t size) const;
  /// The name of an object with these bytes that was put so late that no prune deletes it before the create
  /// ends; empty if there is none.
  std::string YoungObject(std::string_view identity, uint64_t size) const;
  /// The names under which an object with these bytes may be put, of which the next one is for the case that
  /// the one before is taken. An object that the newest backup names and has lost is put under its old name,
  /// which mends that backup, too.
  ///
  /// id  of the backup that puts it.
  std::vector<std::string> NamesFor(std::string_view identity, uint64_t size, std::string_view id) const;

 private:
  /// The file of the newest backup that has these bytes; null if there is none.
  const BackedUpFile* InBase(std::string_view identity, uint64_t size) const;
  absl::Status ReadBase(BlobStore& blobs);

  uint64_t now_ms_ = 0;
  std::string newest_;
  std::map<std::string, BlobEntry, std::less<>> objects_;     // by name
  std::map<std::string, BackedUpFile, std::less<>> in_base_;  // the files of the newest backup, by identity
};

}  // namespace kvstore::backup
