#pragma once

#include <atomic>
#include <chrono>

#include "migration/throttle.h"

namespace kvstore::testing {

/// Time that stands still unless somebody sleeps, and then passes at once. Thread-safe.
class FakeTime {
 public:
  using Clock = migration::ThrottleTime::Clock;

  /// The throttle's view of this, which must outlive it.
  migration::ThrottleTime ForThrottle() {
    return {.now = [this] { return Clock::time_point(Clock::duration(slept_)); },
            .sleep = [this](Clock::duration time) { slept_ += time.count(); }};
  }
  /// How long has been slept in all. Pauses are computed with real numbers, so this is rounded.
  std::chrono::milliseconds Slept() const {
    return std::chrono::round<std::chrono::milliseconds>(Clock::duration(slept_));
  }

 private:
  std::atomic<Clock::rep> slept_{0};
};

}  // namespace kvstore::testing
