#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "base/thread_number.h"

namespace kvstore {

/// An immutable value that many threads read on hot paths, and that is replaced now and then. Readers hold a
/// reference, so an old value is destroyed when its last reader is done with it.
///
/// std::atomic<std::shared_ptr> does the same with one lock and one count for all, so that threads wait for
/// one that was preempted while it held the lock. Here threads are spread over stripes with a lock and a
/// count each. Thread-safe.
template <typename T>
class Snapshot {
 public:
  explicit Snapshot(std::shared_ptr<const T> value) { Store(std::move(value)); }

  /// The value in force.
  std::shared_ptr<const T> Load() const {
    const Stripe& stripe = stripes_[ThreadNumber() % kStripes];
    const std::lock_guard lock(stripe.mutex);
    return stripe.value;
  }

  /// Replaces the value. Every Load that begins later, in any thread, returns the new one.
  void Store(const std::shared_ptr<const T>& value) {
    for (const Stripe& stripe : stripes_) stripe.mutex.lock();
    std::array<std::shared_ptr<const T>, kStripes> old;
    for (size_t i = 0; i < kStripes; ++i) {
      // Each stripe has a reference count of its own, whose object holds one reference of the value.
      auto holder = std::make_shared<std::shared_ptr<const T>>(value);
      const T* const target = value.get();
      old[i] = std::exchange(stripes_[i].value, std::shared_ptr<const T>(std::move(holder), target));
    }
    for (const Stripe& stripe : stripes_) stripe.mutex.unlock();
  }

 private:
  static constexpr size_t kStripes = 32;
  struct alignas(64) Stripe {
    // std::mutex and not Mutex: Store holds all of them, which the thread-safety analysis cannot follow.
    mutable std::mutex mutex;
    std::shared_ptr<const T> value;  // guarded by mutex
  };
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace kvstore
