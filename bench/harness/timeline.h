#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kvstore::bench {

/// What clients saw, over time, and what happened meanwhile. Thread-safe.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// A call ended.
  void Add(Clock::time_point begin, Clock::time_point end, bool write);
  /// Something begins.
  void Mark(std::string what);

  /// Of the calls that ended in [from, to), in microseconds; 0 if there were none.
  double Quantile(Clock::time_point from, Clock::time_point to, double quantile) const;
  /// The longest time without a call of this kind ending, in ms, for calls that were under way.
  double LongestMs(Clock::time_point from, Clock::time_point to, bool write) const;

  /// A picture: calls a second and their p99, with the marks. False if it cannot be written.
  bool WriteSvg(const std::filesystem::path& file, const std::string& title) const;

 private:
  struct Call {
    Clock::time_point end;
    float us;
    bool write;
  };
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::vector<std::pair<Clock::time_point, std::string>> marks_;
};

}  // namespace kvstore::bench
