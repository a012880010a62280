#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "blobstore/sha256.h"

namespace kvstore {

/// Computes the checksum of a blob from the digests of its pieces. The checksum of a blob is
/// - of at most one piece (kBlobPieceBytes): the SHA-256 of its bytes, as 64 hexadecimal digits;
/// - of more pieces: the SHA-256 of the digests of its pieces, one after the other, followed by "-" and the
///   number of pieces. S3 calls this a composite checksum, and keeps it for uploads in parts of this size.
///
/// pieces  The SHA-256 of each piece, in order; all pieces but the last are full. At least one, which for an
///         empty blob is the digest of nothing.
std::string BlobChecksum(const std::vector<Sha256Digest>& pieces);

/// Computes the checksum of a blob whose bytes come in order. Externally synchronised.
class BlobHasher {
 public:
  void Add(std::string_view bytes);
  /// Returns the checksum of all that was added. Call it once.
  std::string Finish();

 private:
  Sha256 piece_;
  uint64_t in_piece_ = 0;  // bytes that piece_ has
  std::vector<Sha256Digest> pieces_;
};

}  // namespace kvstore
