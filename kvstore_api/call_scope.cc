#include "kvstore_api/call_scope.h"

#include <algorithm>

namespace kvstore {
namespace {

thread_local CallLimits current;

}  // namespace

CallScope::CallScope(CallLimits::Clock::duration timeout)
    : CallScope(CallLimits{.deadline = CallLimits::Clock::now() + timeout}) {}

CallScope::CallScope(const CallLimits& limits) : before_(current) {
  if (limits.deadline) current.deadline = EarlierDeadline(*limits.deadline);
  if (limits.cancelled != nullptr) current.cancelled = limits.cancelled;
  current.waits = current.waits && limits.waits;
}

CallScope::~CallScope() { current = before_; }

const CallLimits& CallScope::Current() { return current; }

absl::Status CheckCall() {
  if (current.cancelled != nullptr && current.cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the caller has cancelled the call");
  }
  if (current.deadline && CallLimits::Clock::now() >= *current.deadline) {
    return absl::DeadlineExceededError("the call's deadline has passed");
  }
  return absl::OkStatus();
}

CallLimits::Clock::time_point EarlierDeadline(CallLimits::Clock::time_point time) {
  return current.deadline ? std::min(*current.deadline, time) : time;
}

}  // namespace kvstore
