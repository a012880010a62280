#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace kvstore {

/// Something that happens once, and that one thread waits for.
///
/// It is the system's futex alone. With a lock and a condition variable each wait also takes a call of the
/// system that wakes nobody: a thread that comes back from a condition variable of glibc has the lock as one
/// that others wait for.
class OneEvent {
 public:
  using Clock = std::chrono::steady_clock;

  OneEvent() = default;
  OneEvent(const OneEvent&) = delete;
  OneEvent& operator=(const OneEvent&) = delete;

  /// Wakes the thread that waits, which then sees all that this thread did before. The event must live until
  /// this returns.
  void Notify();
  /// Returns whether it has happened, at the latest at the deadline.
  bool WaitUntil(Clock::time_point deadline);
  /// Returns when it has happened.
  void Wait();
  bool has_happened() const { return state_.load(std::memory_order_acquire) == kHappened; }

 private:
  enum State : uint32_t { kNobodyWaits, kAwaited, kHappened };

  /// Waits until it has happened, or until the deadline, or for less.
  ///
  /// deadline  Null: there is none.
  void Sleep(const timespec* deadline);

  std::atomic<uint32_t> state_{kNobodyWaits};
};

}  // namespace kvstore
