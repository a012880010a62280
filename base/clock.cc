#include "base/clock.h"

#include <atomic>
#include <ctime>

#include "base/shift_clock.h"

namespace kvstore {
namespace {

std::atomic<int64_t> shift_ms{0};

}  // namespace

void ShiftWallClock(int64_t ms) { shift_ms.store(ms, std::memory_order_relaxed); }

CoarseClock::time_point CoarseClock::now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

uint64_t WallClockMs() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  return static_cast<uint64_t>(ms + shift_ms.load(std::memory_order_relaxed));
}

}  // namespace kvstore
