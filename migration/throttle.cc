#include "migration/throttle.h"

#include <algorithm>

namespace kvstore::migration {
namespace {

using Clock = Throttle::Clock;

/// How long a thread sleeps at most at a time, so that it notices new limits, and a stop, soon.
constexpr std::chrono::milliseconds kMaxSleep{100};
/// How long slow reads make a thread sleep at most: it is the copying threads that time them, and that find
/// out when they are fast again.
constexpr std::chrono::milliseconds kMaxSlowed{500};
/// A read that is too slow slows the copy down at once; reads that are fast enough speed it up again
/// gradually.
constexpr double kSlower = 2;
constexpr double kFaster = 0.9;
constexpr double kSlowest = 64;

Clock::duration For(uint64_t amount, uint64_t per_s) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(amount) / static_cast<double>(per_s)));
}

}  // namespace

void Throttle::Set(const Limits& limits) {
  const MutexLock lock(mutex_);
  limits_ = limits;
  units_due_ = bytes_due_ = {};
  slowed_ = 1;
  ++changes_;
}

void Throttle::Observe(Clock::duration read) {
  const MutexLock lock(mutex_);
  const bool slow = limits_.max_read_us != 0 && read > std::chrono::microseconds(limits_.max_read_us);
  slowed_ = slow ? std::min(slowed_ * kSlower, kSlowest) : std::max(slowed_ * kFaster, 1.0);
}

Limits Throttle::limits() const {
  const MutexLock lock(mutex_);
  return limits_;
}

Clock::duration Throttle::Pause(size_t units, size_t bytes, Clock::duration took) {
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  const auto rest = [took](double share) {
    return std::chrono::duration_cast<Clock::duration>(took * ((1 - share) / share));
  };
  const double share = limits_.share / 100.0;
  // A thread that is slowed by two works for half of its share of the time.
  auto pause = std::max(rest(share), std::min<Clock::duration>(rest(share / slowed_), kMaxSlowed));
  const auto add = [&](Clock::time_point& due, uint64_t amount, uint64_t per_s) {
    if (per_s == 0) return;
    due = std::max(due, now - took) + For(amount, per_s);
    pause = std::max(pause, due - now);
  };
  add(units_due_, units, limits_.units_per_s);
  add(bytes_due_, bytes, limits_.bytes_per_s);
  return pause;
}

void Throttle::Wait(size_t units, size_t bytes, Clock::duration took, const std::function<bool()>& stop) {
  const auto changes = [this] {
    const MutexLock lock(mutex_);
    return changes_;
  };
  const uint64_t before = changes();
  const auto until = time_.now() + Pause(units, bytes, took);
  for (auto now = time_.now(); now < until && changes() == before && !stop(); now = time_.now()) {
    time_.sleep(std::min<Clock::duration>(until - now, kMaxSleep));
  }
}

}  // namespace kvstore::migration
