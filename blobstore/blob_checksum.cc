#include "blobstore/blob_checksum.h"

#include <fmt/format.h>

#include <algorithm>

#include "blobstore/blob_store.h"

namespace kvstore {

std::string BlobChecksum(const std::vector<Sha256Digest>& pieces) {
  if (pieces.size() == 1) return Hex(pieces.front());
  Sha256 all;
  for (const Sha256Digest& piece : pieces) all.Add(Bytes(piece));
  return fmt::format("{}-{}", Hex(all.Finish()), pieces.size());
}

void BlobHasher::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (in_piece_ == kBlobPieceBytes) {
      pieces_.push_back(piece_.Finish());
      in_piece_ = 0;
    }
    const std::string_view part =
        bytes.substr(0, std::min<uint64_t>(bytes.size(), kBlobPieceBytes - in_piece_));
    piece_.Add(part);
    in_piece_ += part.size();
    bytes.remove_prefix(part.size());
  }
}

std::string BlobHasher::Finish() {
  pieces_.push_back(piece_.Finish());
  return BlobChecksum(pieces_);
}

}  // namespace kvstore
