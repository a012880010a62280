#pragma once

#include <absl/base/thread_annotations.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/call/work_queue.h"

namespace kvstore::server {

/// Threads for calls that may wait. Callers take turns: a free thread runs one piece of work of the queue
/// whose last turn is the longest ago, however much waits in the other queues. Thread-safe.
class WorkerPool {
 public:
  /// most_each  So much work of one queue runs at a time, at least 1. The threads that are left wait for the
  ///            work of other callers.
  explicit WorkerPool(size_t threads, size_t most_each = SIZE_MAX);
  /// Waits until everything that was posted is done.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Adds work at the end of a queue. Work that is long posts its rest again, so that others have their turn.
  void Post(WorkQueue& queue, Work work);
  /// Returns whether work waits for a thread. Whoever runs work that is long may go on with it if not, in
  /// place of posting its rest.
  bool HasQueued() {
    const MutexLock lock(mutex_);
    return last_ != nullptr;
  }

 private:
  void Run();
  /// Returns the queue whose turn it is by the one before it in the ring; null if there is none.
  WorkQueue* BeforeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Removes and returns the first work of the queue after this one in the ring.
  Work Dequeue(WorkQueue& before, WorkQueue*& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_each_;

  Mutex mutex_;
  std::condition_variable wanted_;
  /// The ring of the queues that have work, by the queue whose turn comes last: the next one is its next_.
  WorkQueue* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::server
