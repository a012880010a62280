#include "base/one_event.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ratio>

namespace kvstore {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free,
              "the system looks at the number itself");

uint32_t* WordOf(std::atomic<uint32_t>& state) { return reinterpret_cast<uint32_t*>(&state); }

}  // namespace

void OneEvent::Notify() {
  if (state_.exchange(kHappened, std::memory_order_acq_rel) != kAwaited) return;
  ::syscall(SYS_futex, WordOf(state_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void OneEvent::Sleep(const timespec* deadline) {
  uint32_t nobody = kNobodyWaits;
  state_.compare_exchange_strong(nobody, kAwaited, std::memory_order_acq_rel);
  // Returns at once if it has happened. The deadline is a time of the monotonic clock, as that of Clock is.
  ::syscall(SYS_futex, WordOf(state_), FUTEX_WAIT_BITSET_PRIVATE, kAwaited, deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

bool OneEvent::WaitUntil(Clock::time_point deadline) {
  using std::chrono::nanoseconds;
  while (!has_happened()) {
    if (Clock::now() >= deadline) return has_happened();
    const auto since = std::chrono::duration_cast<nanoseconds>(deadline.time_since_epoch()).count();
    const timespec until{.tv_sec = since / std::nano::den, .tv_nsec = since % std::nano::den};
    Sleep(&until);
  }
  return true;
}

void OneEvent::Wait() {
  while (!has_happened()) Sleep(nullptr);
}

}  // namespace kvstore
