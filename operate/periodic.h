#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace kvstore::operate {

/// Does something every now and then by a thread of its own, while it is told to, and keeps what came of it
/// last: what may take long must not keep the leader from looking after masters. Thread-safe.
///
/// Result  A StatusOr.
template <typename Result>
class Periodic {
 public:
  /// Does the work once. `active` becomes false when the result is not wanted any more.
  using Work = std::function<Result(const std::atomic<bool>& active)>;

  /// It is not active at first.
  ///
  /// every  The pause between two times.
  Periodic(std::chrono::milliseconds every, Work work)
      : every_(every), work_(std::move(work)), thread_([this] { Run(); }) {}
  /// Waits until the work has noticed that it is not wanted.
  ~Periodic() {
    {
      const MutexLock lock(mutex_);
      active_ = false;
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

  /// Begins at once, or stops as soon as the work notices. The result of earlier work is dropped.
  void SetActive(bool active) {
    {
      const MutexLock lock(mutex_);
      active_ = active;
      ++generation_;
      result_.reset();
    }
    changed_.notify_all();
  }

  /// Returns what came of the last time; nullopt if it was taken already.
  std::optional<Result> Take() {
    const MutexLock lock(mutex_);
    return std::exchange(result_, std::nullopt);
  }

 private:
  void Run() {
    MutexLock lock(mutex_);
    for (;;) {
      while (!stopping_ && !active_) lock.Wait(changed_);
      if (stopping_) return;
      const uint64_t generation = generation_;
      lock.Unlock();
      Result result = DoWork();
      const auto next = std::chrono::steady_clock::now() + every_;
      lock.Lock();
      if (generation == generation_) result_ = std::move(result);
      while (!stopping_ && generation == generation_ && !lock.WaitUntil(changed_, next)) {
      }
    }
  }

  /// Does the work. An exception, as for text in ZooKeeper that nobody expects, is an error like others.
  Result DoWork() {
    try {
      return work_(active_);
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }

  const std::chrono::milliseconds every_;
  const Work work_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> active_{false};
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // counts the calls of SetActive
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kvstore::operate
