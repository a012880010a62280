#include "catalog/deadline_mutex.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "kvstore_api/call_scope.h"

namespace kvstore {
namespace {

/// How often a waiting call checks whether its caller is still there.
constexpr std::chrono::milliseconds kCheckCallEvery{50};

}  // namespace

absl::StatusOr<DeadlineMutex::Guard> DeadlineMutex::Acquire(std::string_view what) {
  MutexLock lock(mutex_);
  while (held_) {
    if (const absl::Status status = CheckCall(); !status.ok()) {
      return absl::Status(status.code(),
                          fmt::format("{}, while it waited for {}, which another call was using",
                                      std::string(status.message()), what));
    }
    lock.WaitUntil(released_, EarlierDeadline(CallLimits::Clock::now() + kCheckCallEvery));
  }
  held_ = true;
  return Guard(this);
}

DeadlineMutex::Guard DeadlineMutex::AcquireWithoutDeadline() {
  MutexLock lock(mutex_);
  while (held_) lock.Wait(released_);
  held_ = true;
  return Guard(this);
}

void DeadlineMutex::Release() {
  {
    const MutexLock lock(mutex_);
    held_ = false;
  }
  released_.notify_one();
}

}  // namespace kvstore
