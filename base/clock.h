#pragma once

#include <chrono>
#include <cstdint>

namespace kvstore {

/// A monotonic clock that is cheap to read and exact to some milliseconds, for timeouts and ages on hot
/// paths.
struct CoarseClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoarseClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

/// The wall clock in ms since 1970. Tests may shift it (shift_clock.h). Thread-safe.
uint64_t WallClockMs();

/// The whole milliseconds of a duration, which must not be negative.
template <typename Rep, typename Period>
constexpr uint64_t Milliseconds(std::chrono::duration<Rep, Period> time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace kvstore
