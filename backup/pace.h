#pragma once

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::backup {

/// Limits how fast the threads of a create read the store's files together, so that the calls of clients find
/// the disk and the network free. Thread-safe.
class Pace {
 public:
  /// bytes_per_s  0: no limit.
  ///
  /// Waits end with the limits of the call that makes this, whichever thread waits.
  explicit Pace(uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s), limits_(CallScope::Current()) {}

  /// The most that is to be read at a time, so that the disk is not busy for long with one read.
  static constexpr uint64_t kMaxReadBytes = uint64_t{1} << 20;

  bool is_limited() const { return bytes_per_s_ != 0; }
  /// Waits, after `bytes` were read, until the next ones may be. DEADLINE_EXCEEDED or CANCELLED if the call
  /// must end.
  absl::Status Wait(uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const uint64_t bytes_per_s_;
  const CallLimits limits_;
  Mutex mutex_;
  Clock::time_point due_ ABSL_GUARDED_BY(mutex_){};  // when all that was read has had its time
};

}  // namespace kvstore::backup
