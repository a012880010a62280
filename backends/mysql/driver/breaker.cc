#include "backends/mysql/driver/breaker.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/jitter.h"

namespace kvstore::mysql {

absl::Status Breaker::Allow() {
  if (!open()) return absl::OkStatus();
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  // The message names no time, which would differ in each: callers that report a failure only once compare
  // the text.
  if (now < until_) {
    return absl::UnavailableError(fmt::format("left alone for a while after it failed: {}", why_));
  }
  // This call tries the host. The others are refused until its outcome is reported, or, if it never is, until
  // another pause is over.
  until_ = now + std::chrono::milliseconds(options_.max_pause_ms);
  return absl::OkStatus();
}

void Breaker::Succeeded() {
  if (failures_.load(std::memory_order_relaxed) == 0) return;
  failures_ = 0;
  const MutexLock lock(mutex_);
  if (open_.exchange(false)) spdlog::info("{} answers again; it failed before with: {}", host_, why_);
}

void Breaker::Failed(const absl::Status& why) {
  const uint32_t failures = ++failures_;
  if (failures < options_.failures) return;
  const MutexLock lock(mutex_);
  const uint32_t doublings = std::min(failures - options_.failures, 16U);
  const uint64_t pause =
      std::min<uint64_t>(uint64_t{options_.min_pause_ms} << doublings, options_.max_pause_ms);
  until_ = Clock::now() + EqualJitter(std::chrono::milliseconds(pause));
  why_ = std::string(why.message());
  if (!open_.exchange(true)) spdlog::warn("{} fails, and is left alone for a while: {}", host_, why_);
}

}  // namespace kvstore::mysql
