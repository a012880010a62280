#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <string_view>

#include "base/fail_point.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// Blocks the thread that reaches a fail point for the `nth` time, until it is released. There may be one of
/// these at a time, which lives until that thread has ended.
class StopAt {
 public:
  StopAt(const char* point, int nth) : point_(point), left_(nth) {
    SetFailPointHook([this](std::string_view name) {
      if (name != point_) return;
      MutexLock lock(mutex_);
      if (--left_ != 0) return;
      there_ = true;
      changed_.notify_all();
      while (!released_) lock.Wait(changed_);
    });
  }
  ~StopAt() { SetFailPointHook(nullptr); }
  void Await() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    MutexLock lock(mutex_);
    while (!there_) ASSERT_FALSE(lock.WaitUntil(changed_, deadline));
  }
  void Release() {
    const MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  const std::string_view point_;
  Mutex mutex_;
  std::condition_variable changed_;
  int left_ ABSL_GUARDED_BY(mutex_);
  bool there_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kvstore::testing
