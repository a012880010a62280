#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/chunk_types.h"
#include "reports/point_block.h"

/// A chunk: a block of points in columns, the value of one cell. Its column in the row is its name.
///
/// Chunk v1, as stored; golden tests pin it, and it never changes without a new version:
///
///   version u8 = 1 | form u8 | CRC-32C u32, big endian, of the rest | directory size varint | directory |
///   body
///
/// Bit 0 of the form says that the body is a zstd frame. The directory has what a reader needs to pass over
/// the chunk (ChunkDirectory, in varints; chunk_directory.cc has the order). The body is
///
///   size of the bit stream varint | bit stream | of each sketch its size varint and its bytes
///
/// and the bit stream has of each series, sorted by segments:
///
///   for each key the position of its segment value in the directory, in as few bits as the greatest one
///   needs 1 bit: same times as the series before; else the number of points, and the times (PackTimes) where
///   the directory says that writes are of both kinds: 1 bit for each point, whether it adds the values
///   (PackNumbers), unless they are sketches
namespace kvstore::reports {

/// The chunk of these points, which may be none, and notes.
///
/// INVALID_ARGUMENT beyond kMaxChunkPoints or kMaxChunkBodyBytes.
absl::StatusOr<std::string> EncodeChunk(const PointBlock& points, const ChunkNotes& notes);

/// A stored chunk whose checksum is right and whose directory has been read.
class Chunk {
 public:
  /// DATA_LOSS for bytes that no EncodeChunk gave. `bytes` must outlive the chunk and its readers.
  static absl::StatusOr<Chunk> Open(std::string_view bytes);

  const ChunkDirectory& directory() const { return directory_; }
  size_t stored_bytes() const { return stored_bytes_; }
  /// The body; DATA_LOSS if it cannot be decompressed.
  ///
  /// room  holds it if it was compressed, and must outlive what is returned.
  absl::StatusOr<std::string_view> Body(std::string& room) const;

 private:
  ChunkDirectory directory_;
  std::string_view body_;
  bool compressed_ = false;
  size_t stored_bytes_ = 0;
};

}  // namespace kvstore::reports
