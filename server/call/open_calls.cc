#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/thread_number.h"
#include "server/call/call.h"
#include "server/call/ends_elsewhere.h"

/// The calls that are open, which call.h declares beside the calls themselves: each knows the other.
namespace kvstore::server {

void OpenCalls::Add(Call& call) {
  call.stripe_ = ThreadNumber() % kStripes;
  Stripe& stripe = stripes_[call.stripe_];
  const MutexLock lock(stripe.mutex);
  call.next_ = stripe.first;
  if (stripe.first != nullptr) stripe.first->previous_ = &call;
  stripe.first = &call;
}

void OpenCalls::Remove(Call& call) {
  Stripe& stripe = stripes_[call.stripe_];
  const MutexLock lock(stripe.mutex);
  (call.previous_ != nullptr ? call.previous_->next_ : stripe.first) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
}

void OpenCalls::CancelStalled(std::chrono::steady_clock::time_point before) {
  const auto at = before.time_since_epoch().count();
  for (Stripe& stripe : stripes_) {
    // The lock keeps each of them from ending meanwhile. A cancelled call ends on another thread, because its
    // end takes the lock.
    const EndsElsewhere elsewhere;
    const MutexLock lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) {
      const auto since = call->waiting_since_.load(std::memory_order_relaxed);
      if (since != 0 && since < at) call->Cancel();
    }
  }
}

bool OpenCalls::HasKnown(const std::string& peer) {
  // At another door another client may have the same address.
  const auto is_known = [&peer](const Call& call) {
    return call.info_.door == Door::kGrpc && call.authenticated_by_.load(std::memory_order_relaxed) != 0 &&
           call.info_.transport.Peer() == peer;
  };
  for (Stripe& stripe : stripes_) {
    const MutexLock lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) {
      if (is_known(*call)) return true;
    }
  }
  return false;
}

void OpenCalls::Drain() {
  for (Stripe& stripe : stripes_) {
    const EndsElsewhere elsewhere;
    const MutexLock lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) call->Drain();
  }
}

std::vector<std::string> OpenCalls::Describe(size_t most) {
  std::vector<std::pair<Call::Clock::time_point, Operation>> calls;
  for (Stripe& stripe : stripes_) {
    const MutexLock lock(stripe.mutex);
    for (Call* call = stripe.first; call != nullptr; call = call->next_) {
      calls.emplace_back(call->info_.begun, call->operation_);
    }
  }
  std::sort(calls.begin(), calls.end());
  calls.resize(std::min(calls.size(), most));
  std::vector<std::string> texts;
  for (const auto& [begun, operation] : calls) {
    const std::chrono::duration<double> seconds = Call::Clock::now() - begun;
    texts.push_back(fmt::format("{} for {:.1f} s", Traits(operation).name, seconds.count()));
  }
  return texts;
}

}  // namespace kvstore::server
