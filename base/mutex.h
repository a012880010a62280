#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kvstore {

/// A std::mutex that Clang's thread-safety analysis knows, so that the compiler refuses a member that is
/// touched without its lock. ./dev locks, which CI runs, checks the annotations with Clang; GCC ignores them
/// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html).
///
/// Existing mutexes do not serve: libstdc++'s std::mutex carries no annotations, and ThreadSanitizer does not
/// see into absl::Mutex where abseil is a system library built without it, and so reports false races.
///
///   class Counter {
///     mutable Mutex mutex_;
///     uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
///   };
///   void Counter::Add() {
///     const MutexLock lock(mutex_);
///     ++count_;
///   }
///
/// A function whose caller must hold the lock is declared with ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_); one
/// that takes the lock itself, and so must be called without it, may be declared with
/// ABSL_LOCKS_EXCLUDED(mutex_).
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // std::lock_guard and std::scoped_lock need these names. Code should use MutexLock.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex from construction to destruction, except between Unlock and Lock.
///
/// The analysis treats a lambda as a function of its own that holds no lock, so wait in a loop, not with a
/// predicate:
///
///   MutexLock lock(mutex_);
///   while (!ready_) lock.Wait(changed_);
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

  /// Releases the lock until `changed` is notified, and holds it again when it returns. May return without a
  /// notification.
  void Wait(std::condition_variable& changed) { changed.wait(lock_); }
  /// As Wait, but no longer than until `deadline`; returns whether the deadline has passed.
  template <typename Clock, typename Duration>
  bool WaitUntil(std::condition_variable& changed, std::chrono::time_point<Clock, Duration> deadline) {
    return changed.wait_until(lock_, deadline) == std::cv_status::timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace kvstore
