#pragma once

#include <utility>

#include "server/call/worker_pool.h"

namespace kvstore::server {

/// Where work of a call waits for its turn: the workers that carry it out, and the queue of its caller for
/// these. Both must outlive this.
struct Lane {
  WorkerPool* workers;
  WorkQueue* queue;

  void Post(Work work) const { workers->Post(*queue, std::move(work)); }
};

}  // namespace kvstore::server
