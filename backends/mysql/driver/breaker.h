#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kvstore_api/mysql_options.h"

namespace kvstore::mysql {

/// A circuit breaker in front of a host: while the host fails, calls to it fail at once instead of each after
/// a timeout. While the breaker is closed, all calls pass. While it is open, no call passes until a pause is
/// over; then one call tries, and its outcome closes the breaker or begins the next pause. The pause doubles
/// with each failure, with jitter, so that clients do not all come back at the same time. Thread-safe.
class Breaker {
 public:
  /// host  the host's name, for the log.
  Breaker(std::string host, const BreakerOptions& options) : host_(std::move(host)), options_(options) {}

  /// Returns OK if a call may be made now; the caller must then report its outcome by Succeeded or Failed.
  /// Returns UNAVAILABLE, with the text of the last failure, while the breaker is open.
  absl::Status Allow();
  /// The host has answered: closes the breaker.
  void Succeeded();
  /// The host has failed with `why`: opens the breaker after BreakerOptions::failures of them in a row.
  void Failed(const absl::Status& why);
  bool open() const { return open_.load(std::memory_order_relaxed); }

 private:
  using Clock = CoarseClock;

  const std::string host_;
  const BreakerOptions options_;
  std::atomic<uint32_t> failures_{0};  // in a row
  std::atomic<bool> open_{false};
  Mutex mutex_;
  std::string why_ ABSL_GUARDED_BY(mutex_);          // the last failure
  Clock::time_point until_ ABSL_GUARDED_BY(mutex_);  // while open: when the next call may try
};

}  // namespace kvstore::mysql
