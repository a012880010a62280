#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kvstore::columnar {

/// Writes to a file descriptor that need not be a file: Arrow's own stream asks the system for its position,
/// which a pipe has none of. Buffers. Externally synchronised.
class OutputPipe : public arrow::io::OutputStream {
 public:
  explicit OutputPipe(int file) : file_(file) {}

  /// Writes what is buffered; the descriptor stays open.
  arrow::Status Close() override;
  /// Writes nothing any more: every call of Write fails. The destructors of Parquet's writers would give a
  /// file that is not complete its footer.
  arrow::Status Abort() override;
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Write(const void* data, int64_t size) override;
  arrow::Status Flush() override;

  arrow::Status Append(std::string_view text) {
    return Write(text.data(), static_cast<int64_t>(text.size()));
  }

  using arrow::io::OutputStream::Write;

 private:
  /// Writes all of these bytes.
  arrow::Status WriteOut(std::string_view bytes) const;

  const int file_;
  std::string buffer_;
  int64_t position_ = 0;
  bool closed_ = false;
  bool aborted_ = false;
};

}  // namespace kvstore::columnar
