#include "base/end_in_time.h"

#include <unistd.h>

#include <utility>

namespace kvstore {

void EndInTime::Begin(std::chrono::milliseconds time, What what,
                      std::function<void(const std::string&)> report) {
  SetWaitingFor(std::move(what));
  thread_ = std::thread([this, time, report = std::move(report)] {
    const auto deadline = std::chrono::steady_clock::now() + time;
    MutexLock lock(mutex_);
    bool late = false;
    while (!done_ && !late) late = lock.WaitUntil(over_, deadline);
    if (done_) return;
    report(what_());
    ::_exit(1);
  });
}

void EndInTime::SetWaitingFor(What what) {
  const MutexLock lock(mutex_);
  what_ = std::move(what);
}

void EndInTime::Done() {
  {
    const MutexLock lock(mutex_);
    done_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvstore
