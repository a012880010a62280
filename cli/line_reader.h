#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace kvstore::cli {

/// Reads lines, without their newlines, from a file descriptor. Externally synchronised.
class LineReader {
 public:
  /// before_wait  called when no whole line is buffered and the next read may wait for long, so that the
  /// caller can flush its answers first. An error ends the read, and is that of Next.
  LineReader(int file, size_t max_line_bytes, std::function<absl::Status()> before_wait)
      : file_(file), max_line_bytes_(max_line_bytes), before_wait_(std::move(before_wait)) {}

  enum class Result { kLine, kTooLong, kEnd };

  /// Reads the next line into `line`. Skips a line beyond the limit, and returns kTooLong. The last line may
  /// lack its newline. UNAVAILABLE if reading fails.
  absl::StatusOr<Result> Next(std::string& line);

  /// Returns how many bytes of input lie before the next line.
  size_t consumed() const { return consumed_; }

 private:
  absl::StatusOr<bool> Fill();

  const int file_;
  const size_t max_line_bytes_;
  const std::function<absl::Status()> before_wait_;
  std::string buffer_;
  size_t begin_ = 0;    // where the part that is not yet returned begins
  size_t scanned_ = 0;  // there is no newline between begin_ and here
  size_t consumed_ = 0;
  bool end_ = false;
};

}  // namespace kvstore::cli
