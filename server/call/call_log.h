#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvstore::server {

/// What is logged of a call.
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

/// A line of JSON for each call that was slow, or failed by more than its own arguments. No values, keys or
/// tokens are in it. At most so many lines a second, each of a KiB or two: how many were left out is told,
/// and a longer message is cut. Thread-safe.
class CallLog {
 public:
  explicit CallLog(uint32_t slow_ms) : slow_seconds_(slow_ms / 1e3) {}

  /// Whether the call is to be logged.
  bool Wants(double seconds, const absl::Status& status) const;
  void Write(const CallRecord& record, const absl::Status& status);

 private:
  static constexpr int kLinesPerSecond = 50;

  const double slow_seconds_;  // 0: none is slow
  std::mutex mutex_;           // guards what follows
  std::chrono::steady_clock::time_point second_;
  int lines_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace kvstore::server
