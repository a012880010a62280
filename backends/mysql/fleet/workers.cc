#include "backends/mysql/fleet/workers.h"

#include <latch>
#include <utility>

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
    const MutexLock lock(mutex_);
    queue_.emplace_back([&task, &done, &limits] {
      const CallScope scope(limits);
      task();
      done.count_down();
    });
    if (queue_.size() > idle_ && threads_.size() < max_threads_) {
      threads_.emplace_back(&Workers::Work, this);
    } else {
      wanted_.notify_one();
    }
  }
  tasks.back()();
  done.wait();
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
