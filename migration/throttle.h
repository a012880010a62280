#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace kvstore::migration {

/// How fast a migration may copy. Each limit applies on its own; 0: no such limit.
struct Limits {
  uint64_t units_per_s = 0;
  uint64_t bytes_per_s = 0;
  /// Percent of its time for which each copying thread works, 1..100. It sleeps for the rest, which leaves
  /// the machine to clients' calls.
  uint32_t share = 50;
  /// While a read of the side that serves takes longer than this many microseconds, threads sleep longer and
  /// longer.
  uint64_t max_read_us = 0;
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// The time by which a throttle measures, and how it sleeps. Tests have one that passes only while it is
/// slept.
struct ThrottleTime {
  using Clock = std::chrono::steady_clock;
  std::function<Clock::time_point()> now = [] { return Clock::now(); };
  std::function<void(Clock::duration)> sleep = [](Clock::duration time) {
    std::this_thread::sleep_for(time);
  };
};

/// Paces threads that copy. Thread-safe.
class Throttle {
 public:
  using Clock = ThrottleTime::Clock;

  explicit Throttle(const Limits& limits, ThrottleTime time = {}) : time_(std::move(time)), limits_(limits) {}

  void Set(const Limits& limits);
  Limits limits() const;

  /// Reports the duration of a read that was just made as a sample of what clients' reads take.
  void Observe(Clock::duration read);

  /// The time by which callers measure how long a copy took.
  Clock::time_point Now() const { return time_.now(); }

  /// Sleeps before a thread continues that has just copied `units` and `bytes`, in the time `took`: as long
  /// as the limits ask for, however long that is, unless `stop` returns true before, or there are new limits.
  void Wait(size_t units, size_t bytes, Clock::duration took, const std::function<bool()>& stop);

 private:
  /// Counts what a thread has copied, and returns how long it must sleep for that.
  Clock::duration Pause(size_t units, size_t bytes, Clock::duration took);

  const ThrottleTime time_;
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // how often Set was called
  double slowed_ ABSL_GUARDED_BY(mutex_) = 1;     // the factor by which slow reads reduce the share
  // When a copy at exactly the limits would have copied as much as was copied.
  Clock::time_point units_due_ ABSL_GUARDED_BY(mutex_){};
  Clock::time_point bytes_due_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace kvstore::migration
