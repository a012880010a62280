#include "migration/throttle.h"

#include <algorithm>

namespace kvstore::migration {
namespace {

using Clock = Throttle::Clock;

/// What a thread sleeps at most at a time, so that it hears of other limits, and of a stop.
constexpr std::chrono::milliseconds kMaxPause{500};

Clock::duration For(uint64_t amount, uint64_t per_s) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(amount) / static_cast<double>(per_s)));
}

}  // namespace

void Throttle::Set(const Limits& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  units_due_ = bytes_due_ = {};
}

Limits Throttle::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

Clock::duration Throttle::Pause(size_t units, size_t bytes, Clock::duration took) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  Clock::duration pause = took * (100 - limits_.share) / limits_.share;
  const auto add = [&](Clock::time_point& due, uint64_t amount, uint64_t per_s) {
    if (per_s == 0) return;
    due = std::max(due, now - took) + For(amount, per_s);
    pause = std::max(pause, due - now);
  };
  add(units_due_, units, limits_.units_per_s);
  add(bytes_due_, bytes, limits_.bytes_per_s);
  return std::min<Clock::duration>(pause, kMaxPause);
}

}  // namespace kvstore::migration
