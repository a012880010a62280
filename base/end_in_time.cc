#include "base/end_in_time.h"

#include <unistd.h>

#include <utility>

namespace kvstore {
namespace {

/// How long telling what is waited for may take.
constexpr std::chrono::seconds kToTell{1};

}  // namespace

void EndInTime::Begin(std::chrono::milliseconds time, Report report) {
  {
    const MutexLock lock(mutex_);
    deadline_ = Clock::now() + time;
  }
  thread_ = std::thread([this, report = std::move(report)] {
    if (!IsLate()) return;
    // By a thread of its own, since this may hang, too: in a log whose reader does not read, or on a lock
    // that is held by what hangs.
    std::thread([this, &report] {
      report(Describe());
      ::_exit(1);
    }).detach();
    std::this_thread::sleep_for(kToTell);
    ::_exit(1);
  });
}

bool EndInTime::IsLate() {
  MutexLock lock(mutex_);
  while (!done_ && Clock::now() < deadline_) lock.WaitUntil(over_, deadline_);
  return !done_;
}

std::string EndInTime::Describe() {
  const MutexLock lock(mutex_);
  return what_ ? what_() : "";
}

void EndInTime::SetWaitingFor(What what) {
  const MutexLock lock(mutex_);
  what_ = std::move(what);
}

void EndInTime::Extend(std::chrono::milliseconds time) {
  {
    const MutexLock lock(mutex_);
    deadline_ += time;
  }
  over_.notify_all();
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
