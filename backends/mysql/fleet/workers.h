#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace kvstore::mysql {

/// Threads for calls that work on several hosts at once. A thread is started whenever none is idle, up to a
/// limit: hosts that hang would block a pool of fixed size, as libraries offer it. Threads live as long as
/// this object, because each must be announced to the connector's driver. Thread-safe.
class Workers {
 public:
  explicit Workers(size_t max_threads) : max_threads_(max_threads) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs all tasks, the last one in the caller's thread, and returns when all are done. Each runs within the
  /// limits of the caller's call (CallScope). Tasks must not throw, and must not wait for one another. The
  /// caller's thread also runs those that no other thread has begun when its own is done: no call waits until
  /// the long tasks of other calls end, and it goes on where the system gives no threads.
  void RunAll(std::span<const std::function<void()>> tasks);

 private:
  /// The tasks of one call of RunAll.
  struct Batch;
  /// A task that waits for a thread.
  struct Queued {
    std::shared_ptr<Batch> batch;
    size_t task;
  };

  /// Has a thread run the task, unless there is none and none can be started.
  void Enqueue(Queued task);
  void Work();

  const size_t max_threads_;
  Mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace kvstore::mysql
