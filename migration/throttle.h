#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

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

/// Paces threads that copy. Thread-safe.
class Throttle {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Throttle(const Limits& limits) : limits_(limits) {}

  void Set(const Limits& limits);
  Limits limits() const;

  /// Reports the duration of a read that was just made as a sample of what clients' reads take.
  void Observe(Clock::duration read);

  /// Returns how long a thread that has just copied `units` and `bytes`, in the time `took`, must sleep
  /// before it continues: as long as the limits ask for, however long that is.
  Clock::duration Pause(size_t units, size_t bytes, Clock::duration took);
  /// Sleeps for as long as Pause returns, unless `stop` returns true before, or there are new limits.
  void Wait(size_t units, size_t bytes, Clock::duration took, const std::function<bool()>& stop);

 private:
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // how often Set was called
  double slowed_ ABSL_GUARDED_BY(mutex_) = 1;     // the factor by which slow reads reduce the share
  // When a copy at exactly the limits would have copied as much as was copied.
  Clock::time_point units_due_ ABSL_GUARDED_BY(mutex_){};
  Clock::time_point bytes_due_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace kvstore::migration
