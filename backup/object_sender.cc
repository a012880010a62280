#include "backup/object_sender.h"

#include <fmt/format.h>

#include <span>

#include "backup/layout.h"
#include "base/fail_point.h"
#include "blobstore/blob_checksum.h"

namespace kvstore::backup {

absl::StatusOr<BackedUpFile> ObjectSender::Keep(std::string path, const std::string& bytes) {
  BlobHasher hasher;
  hasher.Add(bytes);
  BackedUpFile file{.path = std::move(path), .blob = "", .size = bytes.size(), .checksum = hasher.Finish()};
  const std::string identity = FileBlob(file.checksum);
  if (const BackedUpFile* const base = destination_.Kept(identity, file.size); base != nullptr) {
    file.blob = base->blob;
    return file;
  }
  file.blob = destination_.YoungObject(identity, file.size);
  if (!file.blob.empty()) return file;
  for (std::string& name : destination_.NamesFor(identity, file.size, id_)) {
    Reached("backup-object");
    const absl::Status put = PutBytes(blobs_, name, bytes);
    // Another create has mended it meanwhile, or another file of this one has the same bytes.
    if (absl::IsAlreadyExists(put)) {
      const auto there = blobs_.Stat(name);
      if (!there.ok()) return there.status();
      const bool is_same =
          there->size == file.size && (there->checksum.empty() || there->checksum == file.checksum);
      if (!is_same) continue;
    } else if (!put.ok()) {
      return put;
    } else {
      ++sent_objects_;
      sent_bytes_ += bytes.size();
    }
    file.blob = std::move(name);
    return file;
  }
  return absl::DataLossError(
      fmt::format("{}: an object {} that another backup has put is in the way", blobs_.url(), identity));
}

absl::Status PutBytes(BlobStore& blobs, const std::string& name, const std::string& bytes) {
  if (bytes.size() <= kBlobPieceBytes) return blobs.Put(name, bytes, PutMode::kIfAbsent).status();
  size_t at = 0;
  const auto source = [&](std::span<char> buffer) -> absl::StatusOr<size_t> {
    const size_t count = bytes.copy(buffer.data(), buffer.size(), at);
    at += count;
    return count;
  };
  return blobs.PutStream(name, source, PutMode::kIfAbsent).status();
}

}  // namespace kvstore::backup
