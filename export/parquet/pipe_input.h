#pragma once

#include <arrow/result.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "export/pipe/table.h"

namespace kvstore::columnar {

/// Reads the frames of a table (export/pipe/table.h) from a file descriptor, whose bytes anybody may have
/// sent. Externally synchronised.
class PipeInput {
 public:
  explicit PipeInput(int file) : file_(file) {}

  struct Frame {
    pipe::FrameKind kind = pipe::FrameKind::kEnd;
    std::string_view bytes;  ///< At an address that is a multiple of 8; valid until the next call.
  };

  /// Reads the bytes that a stream begins with; Invalid if they are others.
  arrow::Status ReadMagic();
  /// Reads the next frame. Invalid if it is of no known kind, is too large, or is cut off: the stream ends
  /// after the last frame and nowhere else.
  arrow::Result<Frame> Next();
  /// Invalid unless the stream ends here.
  arrow::Status CheckEnd();

 private:
  /// Reads so many bytes, or up to the end of the stream if that comes before; returns how many.
  arrow::Result<size_t> Read(void* to, size_t size) const;

  const int file_;
  std::vector<uint64_t> buffer_;  // its memory is reused
};

}  // namespace kvstore::columnar
