#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "kvstore_api/types.h"

namespace kvstore::backup {

/// Adds up the bytes that the threads of a create, a restore or a verification have done, and tells a
/// Progress, one call at a time. Thread-safe.
class ProgressCounter {
 public:
  /// progress  may be null.
  /// total     the bytes of all; if more are done, what is told grows with them.
  /// stopped   the message of the error of Add when `progress` has returned false.
  ProgressCounter(Progress progress, uint64_t total, std::string stopped)
      : progress_(std::move(progress)), total_(total), stopped_(std::move(stopped)) {}

  /// CANCELLED if the work is to stop.
  absl::Status Add(uint64_t bytes) {
    const MutexLock lock(mutex_);
    done_ += bytes;
    if (!progress_ || progress_(done_, std::max(done_, total_))) return absl::OkStatus();
    return absl::CancelledError(stopped_);
  }
  uint64_t done() const {
    const MutexLock lock(mutex_);
    return done_;
  }

 private:
  const Progress progress_;
  const uint64_t total_;
  const std::string stopped_;
  mutable Mutex mutex_;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvstore::backup
