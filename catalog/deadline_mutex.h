#pragma once

#include <condition_variable>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace kvstore {

/// A mutex for work that waits for other machines while it holds the lock. A call waits for it no longer than
/// its limits allow (call_scope.h). Thread-safe; waiters are served in no particular order.
///
/// Clang's analysis does not follow it, because the lock is returned as a value: members that it guards say
/// so in a comment.
class DeadlineMutex {
 public:
  /// Holds the mutex, and releases it when it is destroyed. The mutex must outlive it.
  class Guard {
   public:
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (mutex_ != nullptr) mutex_->Release();
    }

   private:
    friend class DeadlineMutex;
    explicit Guard(DeadlineMutex* mutex) : mutex_(mutex) {}
    DeadlineMutex* mutex_;
  };

  /// Waits until the mutex is free, the thread's call has no time left (DEADLINE_EXCEEDED), or its caller has
  /// gone (CANCELLED). The error names what the call was waiting for.
  ///
  /// what  what the mutex guards, for the error: "the catalog"
  [[nodiscard]] absl::StatusOr<Guard> Acquire(std::string_view what);
  /// Waits until the mutex is free, whatever the limits of the thread's call.
  [[nodiscard]] Guard AcquireWithoutDeadline();

 private:
  void Release();

  Mutex mutex_;
  std::condition_variable released_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kvstore
