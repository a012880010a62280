#include "export/parquet/output_pipe.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvstore::columnar {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

arrow::Status OutputPipe::WriteOut(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return arrow::Status::IOError("cannot write standard output: ", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return arrow::Status::OK();
}

arrow::Status OutputPipe::Write(const void* data, int64_t size) {
  if (aborted_) return arrow::Status::Invalid("the output was given up");
  const std::string_view bytes(static_cast<const char*>(data), static_cast<size_t>(size));
  position_ += size;
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_ += bytes;
    return arrow::Status::OK();
  }
  ARROW_RETURN_NOT_OK(Flush());
  if (bytes.size() > kBufferBytes) return WriteOut(bytes);
  buffer_ = bytes;
  return arrow::Status::OK();
}

arrow::Status OutputPipe::Flush() {
  ARROW_RETURN_NOT_OK(WriteOut(buffer_));
  buffer_.clear();
  return arrow::Status::OK();
}

arrow::Status OutputPipe::Close() {
  closed_ = true;
  return Flush();
}

arrow::Status OutputPipe::Abort() {
  closed_ = true;
  aborted_ = true;
  buffer_.clear();
  return arrow::Status::OK();
}

}  // namespace kvstore::columnar
