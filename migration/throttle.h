#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace kvstore::migration {

/// How fast a migration may copy. Each limit holds on its own; 0: none.
struct Limits {
  uint64_t units_per_s = 0;
  uint64_t bytes_per_s = 0;
  /// Of each copying thread's time, percent, 1..100: the rest it sleeps, which leaves the machine to the
  /// calls of clients.
  uint32_t share = 50;
  /// While a read of the side that serves takes longer, us, threads sleep longer and longer.
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

  /// What a read has just taken that stands for those of clients.
  void Observe(Clock::duration read);

  /// How long a thread that has just copied so much, in `took`, waits before it goes on.
  Clock::duration Pause(size_t units, size_t bytes, Clock::duration took);

 private:
  mutable std::mutex mutex_;
  Limits limits_;
  double slowed_ = 1;  // pauses are so many times as long, and work so many times as rare
  // When all that was copied would have been, at the limits.
  Clock::time_point units_due_{};
  Clock::time_point bytes_due_{};
};

}  // namespace kvstore::migration
