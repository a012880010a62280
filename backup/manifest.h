#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore::backup {

/// A file of a backup.
struct BackedUpFile {
  std::string path;  ///< Where it belongs in the folder of a store: "rocksdb/000012.sst".
  std::string blob;  ///< The object that has its bytes.
  uint64_t size = 0;
  std::string checksum;  ///< As BlobChecksum gives it (blobstore/blob_checksum.h).

  bool operator==(const BackedUpFile&) const = default;
};

/// What a backup consists of.
struct Manifest {
  std::string id;
  uint64_t began_ms = 0;     ///< Every write that was acknowledged before this time is in the backup.
  uint64_t finished_ms = 0;  ///< When the manifest was put.
  std::string host;          ///< The host and the process that made it, for people.
  std::string version;       ///< Of KVStore.
  std::string engine;        ///< "rocksdb 7.8.3": the version that wrote the files.
  uint64_t sequence = 0;     ///< The number of the last write that is certainly in it, as the engine counts.
  uint64_t sent_objects = 0;
  uint64_t sent_bytes = 0;  ///< What the create sent because the destination lacked it.
  std::vector<BackedUpFile> files;

  /// Bytes of all files.
  uint64_t TotalBytes() const;
  /// The file at this path; null if there is none.
  const BackedUpFile* Find(std::string_view path) const;

  bool operator==(const Manifest&) const = default;
};

/// Encodes a manifest as two lines of JSON: the manifest, and {"sha256": "..."} of the first line without its
/// end. Golden tests pin this form.
std::string EncodeManifest(const Manifest& manifest);

/// Decodes a manifest, whose bytes anybody may have written.
///
/// id  The backup that it must be of.
///
/// DATA_LOSS if it is damaged, or if a path could lead out of a folder, is there twice, or is a folder of
/// another; FAILED_PRECONDITION if a newer version wrote it. The message begins with the name of the blob.
absl::StatusOr<Manifest> DecodeManifest(std::string_view text, std::string_view id);

}  // namespace kvstore::backup
