#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace kvstore::server {

/// Limits how many lines somebody outside can have written to the log. Thread-safe.
class LineLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LineLimit(int lines_per_second) : most_(lines_per_second) {}

  /// Returns nothing if the line is to be left out. Else returns how many lines were left out that no line
  /// has told of yet: those of earlier seconds, with the first line of a later one.
  std::optional<uint64_t> Admit(Clock::time_point now) {
    const MutexLock lock(mutex_);
    uint64_t left_out = 0;
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
      left_out = std::exchange(left_out_, 0);
    }
    if (lines_ == most_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return left_out;
  }

 private:
  const int most_;
  Mutex mutex_;
  Clock::time_point second_ ABSL_GUARDED_BY(mutex_);  // when the current one began
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;             // in the current second
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;     // since it was told last
};

}  // namespace kvstore::server
