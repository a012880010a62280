#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "backends/mysql/options.h"
#include "base/clock.h"

namespace kvstore::mysql {

/// Leaves a host alone that fails, so that calls to it fail at once and not each after a timeout. Closed: all
/// is well. Open: nobody tries until a pause is over; then one call does, and its outcome decides. The pause
/// doubles with each failure, with jitter, so that clients do not all come back together. Thread-safe.
class Breaker {
 public:
  /// host  its name, for the log.
  Breaker(std::string host, const BreakerOptions& options) : host_(std::move(host)), options_(options) {}

  /// UNAVAILABLE, with the last failure, while the host is left alone. After OK, Succeeded or Failed must
  /// follow.
  absl::Status Allow();
  void Succeeded();
  void Failed(const absl::Status& why);
  bool open() const { return open_.load(std::memory_order_relaxed); }

 private:
  using Clock = CoarseClock;

  const std::string host_;
  const BreakerOptions options_;
  std::atomic<uint32_t> failures_{0};  // in a row
  std::atomic<bool> open_{false};
  std::mutex mutex_;  // guards what follows
  std::string why_;
  Clock::time_point until_;  // while open: when the next one may try
};

}  // namespace kvstore::mysql
