#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "router/router.h"
#include "server/call/lane.h"

namespace kvstore::server {

/// Calls that wait because their datasets migrate, or for room. They are retried when another catalog is in
/// force, or after a moment (Router::kMigrationRetryInterval), and occupy no thread until then: one thread
/// waits for all of them. Thread-safe.
class SuspendedCalls {
 public:
  using Clock = Router::Clock;
  struct Suspended {
    /// Returns whether the call has to be retried now in any case: its time is over, or nobody waits for it
    /// any more.
    std::function<bool(Clock::time_point now)> due;
    /// Retries the call, once.
    Work retry;
    Lane lane;  ///< Where it is retried.
  };

  /// draining  Returns whether the server stops: then all calls are retried, so that each is told so.
  SuspendedCalls(Router& router, std::function<bool()> draining);
  /// No call may be suspended any more.
  ~SuspendedCalls();
  SuspendedCalls(const SuspendedCalls&) = delete;
  SuspendedCalls& operator=(const SuspendedCalls&) = delete;

  void Add(Suspended call);
  size_t size() const;

 private:
  /// How many calls are retried at a time while the catalog stays the same, those that were suspended first
  /// before others: kTogether of them or every kShare-th, whichever is more. So the last ones do not wait for
  /// long, and the backend does not get all of them at once.
  static constexpr size_t kTogether = 32;
  static constexpr size_t kShare = 8;

  void Watch();
  /// Removes and returns the calls that are to be retried now.
  std::vector<Suspended> DequeueDue(bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Router& router_;
  const std::function<bool()> draining_;
  mutable Mutex mutex_;
  std::condition_variable wanted_;
  std::vector<Suspended> suspended_ ABSL_GUARDED_BY(mutex_);  // in the order of Add
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvstore::server
