#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace kvstore::bench {

/// The calls that clients made over time, and marks of what happened meanwhile. Thread-safe.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds a call that has ended.
  void Add(Clock::time_point begin, Clock::time_point end, bool write);
  /// Marks the beginning of something.
  void Mark(std::string what);

  /// Returns a quantile of the latencies, in microseconds, of the calls that ended in [from, to); 0 if there
  /// were none.
  double Quantile(Clock::time_point from, Clock::time_point to, double quantile) const;
  /// Returns the latency in ms of the slowest call of this kind that ended in [from, to).
  double LongestMs(Clock::time_point from, Clock::time_point to, bool write) const;

  /// Draws calls a second and their p99, with the marks. Returns false if the file cannot be written.
  bool WriteSvg(const std::filesystem::path& file, const std::string& title) const;

 private:
  struct Call {
    Clock::time_point end;
    float us;
    bool write;
  };
  mutable Mutex mutex_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<Clock::time_point, std::string>> marks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::bench
