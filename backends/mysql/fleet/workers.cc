#include "backends/mysql/fleet/workers.h"

#include <latch>
#include <utility>

#include "base/start_thread.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {

Workers::~Workers() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::RunAll(std::span<const std::function<void()>> tasks) {
  if (tasks.empty()) return;
  const CallLimits limits = CallScope::Current();
  std::latch done(static_cast<ptrdiff_t>(tasks.size() - 1));
  for (const auto& task : tasks.first(tasks.size() - 1)) {
    const auto queued = [&task, &done, &limits] {
      const CallScope scope(limits);
      task();
      done.count_down();
    };
    if (!Enqueue(queued)) queued();
  }
  tasks.back()();
  done.wait();
}

bool Workers::Enqueue(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (queue_.size() >= idle_ && threads_.size() < max_threads_) {
    std::thread thread;
    if (StartThread(thread, "a host", [this] { Work(); }).ok()) threads_.push_back(std::move(thread));
    if (threads_.empty()) return false;
  }
  queue_.push_back(std::move(task));
  wanted_.notify_one();
  return true;
}

void Workers::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!stopping_ && queue_.empty()) lock.Wait(wanted_);
    --idle_;
    if (queue_.empty()) return;
    const auto task = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    task();
    lock.Lock();
  }
}

}  // namespace kvstore::mysql
