#pragma once

#include <chrono>
#include <cstdint>

namespace kvstore {

/// A steady clock that is cheap to read and exact to some milliseconds, for timeouts and ages on hot paths.
struct CoarseClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoarseClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

/// The wall clock in ms since 1970. Thread-safe.
uint64_t WallClockMs();

}  // namespace kvstore
