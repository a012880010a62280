#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace kvstore::server {

/// What the log says about a call, beside its status.
struct CallRecord {
  std::string_view operation;
  std::string_view dataset;
  std::string_view backend;
  std::string_view principal;
  std::string peer;
  double seconds = 0;
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

/// Logs a line of JSON for each call that was slow, or failed for another reason than its own arguments. No
/// values, keys or tokens are logged. Lines are limited to 50 a second, and the first line of a later second
/// says how many were left out; a message beyond 500 bytes is cut. Thread-safe.
class CallLog {
 public:
  /// slow_ms  Calls that take at least so long are slow; 0: none is.
  explicit CallLog(uint32_t slow_ms) : slow_seconds_(slow_ms / 1e3) {}

  /// Returns whether such a call is to be logged.
  bool Wants(double seconds, const absl::Status& status) const;
  void Write(const CallRecord& record, const absl::Status& status);

 private:
  static constexpr int kLinesPerSecond = 50;

  const double slow_seconds_;  // 0: none is slow
  Mutex mutex_;
  std::chrono::steady_clock::time_point second_ ABSL_GUARDED_BY(mutex_);  // when the current one began
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;                                 // in the current second
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;                         // since it was logged last
};

}  // namespace kvstore::server
