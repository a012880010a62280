#include "server/call/worker_pool.h"

#include <utility>

namespace kvstore::server {

WorkerPool::WorkerPool(size_t threads, size_t most_each) : most_each_(most_each) {
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

WorkQueue* WorkerPool::BeforeNext() {
  if (last_ == nullptr) return nullptr;
  WorkQueue* before = last_;
  do {
    if (before->next_->running_ < most_each_) return before;
    before = before->next_;
  } while (before != last_);
  return nullptr;
}

Work WorkerPool::Dequeue(WorkQueue& before, WorkQueue*& from) {
  WorkQueue& queue = *before.next_;
  from = &queue;
  Work work = std::move(queue.works_.front());
  queue.works_.pop_front();
  ++queue.running_;
  if (queue.next_ == &queue) {
    if (queue.works_.empty()) last_ = nullptr;
    return work;
  }
  // Its next turn comes after those of all others, if it has more work.
  before.next_ = queue.next_;
  if (last_ == &queue) last_ = &before;
  if (!queue.works_.empty()) {
    queue.next_ = std::exchange(last_->next_, &queue);
    last_ = &queue;
  }
  return work;
}

void WorkerPool::Run() {
  MutexLock lock(mutex_);
  for (;;) {
    WorkQueue* before = BeforeNext();
    while (before == nullptr) {
      // Work that other threads still run may post more, and more may be queued than may run; those threads
      // run that, too.
      if (stopping_) return;
      ++idle_;
      lock.Wait(wanted_);
      --idle_;
      before = BeforeNext();
    }
    WorkQueue* from = nullptr;
    {
      Work work = Dequeue(*before, from);
      lock.Unlock();
      work();
      // The work, and what it owns, is destroyed before the lock is taken again.
    }
    lock.Lock();
    --from->running_;
  }
}

}  // namespace kvstore::server
