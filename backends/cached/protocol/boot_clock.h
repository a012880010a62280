#pragma once

#include <chrono>

namespace kvstore::cached {

/// Time that also passes while the machine sleeps, for what ends by itself on all machines at once.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

}  // namespace kvstore::cached
