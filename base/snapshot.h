#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "base/thread_number.h"

namespace kvstore {

/// An immutable value that is read on hot paths by many threads and replaced now and then. Readers hold a
/// reference, so that an old value goes when the last of them is done with it.
///
/// std::atomic<std::shared_ptr> does the same with one lock and one count for all: threads wait for one that
/// was preempted in between. Here threads are spread over stripes with a lock and a count each. Thread-safe.
template <typename T>
class Snapshot {
 public:
  explicit Snapshot(std::shared_ptr<const T> value) { Store(std::move(value)); }

  std::shared_ptr<const T> Load() const {
    const Stripe& stripe = stripes_[ThreadNumber() % kStripes];
    const std::lock_guard lock(stripe.mutex);
    return stripe.value;
  }

  /// All later Loads give this value, in whichever thread.
  void Store(const std::shared_ptr<const T>& value) {
    for (const Stripe& stripe : stripes_) stripe.mutex.lock();
    std::array<std::shared_ptr<const T>, kStripes> old;
    for (size_t i = 0; i < kStripes; ++i) {
      // A count of the stripe's own, which holds one of the value's.
      auto holder = std::make_shared<std::shared_ptr<const T>>(value);
      const T* const target = value.get();
      old[i] = std::exchange(stripes_[i].value, std::shared_ptr<const T>(std::move(holder), target));
    }
    for (const Stripe& stripe : stripes_) stripe.mutex.unlock();
  }

 private:
  static constexpr size_t kStripes = 32;
  struct alignas(64) Stripe {
    mutable std::mutex mutex;
    std::shared_ptr<const T> value;  // guarded by mutex
  };
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace kvstore
