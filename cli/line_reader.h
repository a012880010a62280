#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace kvstore::cli {

/// Reads lines from a file descriptor, without its end. Externally synchronised.
class LineReader {
 public:
  /// before_wait  called when no whole line is at hand and more is to be read, which may take long: the
  /// moment to flush
  ///              what was answered so far.
  LineReader(int file, size_t max_line_bytes, std::function<void()> before_wait)
      : file_(file), max_line_bytes_(max_line_bytes), before_wait_(std::move(before_wait)) {}

  enum class Result { kLine, kTooLong, kEnd };

  /// Reads the next line into `line`. A line beyond the limit is passed over: kTooLong. The last line may
  /// lack its end. UNAVAILABLE if reading fails.
  absl::StatusOr<Result> Next(std::string& line);

  /// Bytes of input that lie before the next line.
  size_t consumed() const { return consumed_; }

 private:
  absl::StatusOr<bool> Fill();

  const int file_;
  const size_t max_line_bytes_;
  const std::function<void()> before_wait_;
  std::string buffer_;
  size_t begin_ = 0;    // of what is not yet returned
  size_t scanned_ = 0;  // no line end before
  size_t consumed_ = 0;
  bool end_ = false;
};

}  // namespace kvstore::cli
