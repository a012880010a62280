#include "server/call/worker_pool.h"

#include <utility>

namespace kvstore::server {

WorkerPool::WorkerPool(size_t threads) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Post(WorkQueue& queue, Work work) {
  bool somebody_waits = false;
  {
    const MutexLock lock(mutex_);
    if (queue.works_.empty()) {
      // The queue had no work, so its turn comes after those of all others.
      if (last_ == nullptr) {
        queue.next_ = &queue;
      } else {
        queue.next_ = std::exchange(last_->next_, &queue);
      }
      last_ = &queue;
    }
    queue.works_.push_back(std::move(work));
    somebody_waits = idle_ > 0;
  }
  if (somebody_waits) wanted_.notify_one();
}

Work WorkerPool::Dequeue() {
  WorkQueue& queue = *last_->next_;
  Work work = std::move(queue.works_.front());
  queue.works_.pop_front();
  if (!queue.works_.empty()) {
    last_ = &queue;
  } else if (last_ == &queue) {
    last_ = nullptr;
  } else {
    last_->next_ = queue.next_;
  }
  return work;
}

void WorkerPool::Run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (last_ == nullptr) {
      // Work that other threads still run may post more; those threads run that, too.
      if (stopping_) return;
      ++idle_;
      lock.Wait(wanted_);
      --idle_;
    }
    {
      Work work = Dequeue();
      lock.Unlock();
      work();
      // The work, and what it owns, is destroyed before the lock is taken again.
    }
    lock.Lock();
  }
}

}  // namespace kvstore::server
