#include "backup/pace.h"

#include <algorithm>
#include <thread>

namespace kvstore::backup {
namespace {

/// How soon a wait notices that the call must end.
constexpr std::chrono::milliseconds kMaxSleep{100};

}  // namespace

absl::Status Pace::Wait(uint64_t bytes) {
  if (!is_limited()) return absl::OkStatus();
  // S3 reads ahead in a thread of its own, which has no limits.
  const CallScope scope(limits_);
  const auto takes = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(bytes_per_s_)));
  Clock::time_point until;
  {
    const MutexLock lock(mutex_);
    due_ = std::max(due_, Clock::now()) + takes;
    until = due_;
  }
  for (auto now = Clock::now(); now < until; now = Clock::now()) {
    if (auto status = CheckCall(); !status.ok()) return status;
    std::this_thread::sleep_for(std::min<Clock::duration>(until - now, kMaxSleep));
  }
  return CheckCall();
}

}  // namespace kvstore::backup
