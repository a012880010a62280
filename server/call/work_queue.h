#pragma once

#include <cstddef>
#include <deque>

#include "absl/functional/any_invocable.h"

namespace kvstore::server {

using Work = absl::AnyInvocable<void()>;

/// The work of one caller that waits for a worker, in order. A queue belongs to one WorkerPool; it must
/// outlive the pool, which looks at it after its work has ended, too.
class WorkQueue {
 public:
  WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

 private:
  friend class WorkerPool;

  // All are guarded by the pool's mutex.
  std::deque<Work> works_;
  WorkQueue* next_ = nullptr;  // in the pool's ring of queues that have work
  size_t running_ = 0;         // how much of its work runs now
};

}  // namespace kvstore::server
