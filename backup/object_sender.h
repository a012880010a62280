#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "backup/destination.h"
#include "backup/manifest.h"
#include "blobstore/blob_store.h"

namespace kvstore::backup {

/// Makes sure that a store of backups has the bytes that a create gives it: uses an object that is there, or
/// puts one. Thread-safe.
class ObjectSender {
 public:
  /// destination  must outlive it.
  /// id           of the backup that is made.
  ObjectSender(BlobStore& blobs, const Destination& destination, std::string id)
      : blobs_(blobs), destination_(destination), id_(std::move(id)) {}

  /// Returns the file at `path` with the object that has its bytes.
  absl::StatusOr<BackedUpFile> Keep(std::string path, const std::string& bytes);

  // The objects, and their bytes, that it has put because the store of backups lacked them.
  uint64_t sent_objects() const { return sent_objects_; }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  BlobStore& blobs_;
  const Destination& destination_;
  const std::string id_;
  std::atomic<uint64_t> sent_objects_{0};
  std::atomic<uint64_t> sent_bytes_{0};
};

/// Puts a blob, of whatever size, whose bytes are in memory. ALREADY_EXISTS if there is one of that name.
absl::Status PutBytes(BlobStore& blobs, const std::string& name, const std::string& bytes);

}  // namespace kvstore::backup
