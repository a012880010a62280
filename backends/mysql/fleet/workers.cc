#include "backends/mysql/fleet/workers.h"

#include <atomic>
#include <latch>
#include <utility>

#include "base/start_thread.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::mysql {

/// A thread may look at this when RunAll has returned. The tasks, and what the limits point to, are then
/// gone: only a thread that has taken a task, for which RunAll waits, may touch them.
struct Workers::Batch {
  explicit Batch(std::span<const std::function<void()>> all)
      : tasks(all), taken(all.size()), done(static_cast<ptrdiff_t>(all.size())) {}

  /// Runs the task, unless a thread has taken it before; then returns false.
  bool Run(size_t task) {
    if (taken[task].exchange(true)) return false;
    {
      const CallScope scope(limits);
      tasks[task]();
    }
    done.count_down();
    return true;
  }

  const std::span<const std::function<void()>> tasks;
  const CallLimits limits = CallScope::Current();
  std::vector<std::atomic<bool>> taken;  // by task
  std::latch done;
};

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
  const auto batch = std::make_shared<Batch>(tasks);
  for (size_t task = 0; task + 1 < tasks.size(); ++task) Enqueue({batch, task});
  bool left_any = false;
  // From the back, because the threads take tasks from the front.
  for (size_t task = tasks.size(); task-- > 0;) left_any |= batch->Run(task) && task + 1 < tasks.size();
  if (left_any) {
    // While all threads are busy nobody else would take these out of the queue, which would grow with each
    // call.
    const MutexLock lock(mutex_);
    std::erase_if(queue_, [&](const Queued& queued) { return queued.batch == batch; });
  }
  batch->done.wait();
}

void Workers::Enqueue(Queued task) {
  const MutexLock lock(mutex_);
  if (queue_.size() >= idle_ && threads_.size() < max_threads_) {
    std::thread thread;
    if (StartThread(thread, "a host", [this] { Work(); }).ok()) threads_.push_back(std::move(thread));
    if (threads_.empty()) return;
  }
  queue_.push_back(std::move(task));
  wanted_.notify_one();
}

void Workers::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    while (!stopping_ && queue_.empty()) lock.Wait(wanted_);
    --idle_;
    if (queue_.empty()) return;
    const Queued queued = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    queued.batch->Run(queued.task);
    lock.Lock();
  }
}

}  // namespace kvstore::mysql
