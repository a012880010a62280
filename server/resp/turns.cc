#include "server/resp/turns.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace kvstore::server::resp {

bool Turns::MayBegin(const void* caller, Clock::time_point now) {
  if (std::exchange(latest_, caller) != caller) changed_ = now;
  if (!IsShared(now)) return true;
  Caller& its = Find(caller, now);
  its.last = now;
  if (is_turn_) return true;
  // Work of this caller that has waited since earlier comes first.
  if (!its.waiting.empty()) return false;
  return std::all_of(callers_.begin(), callers_.end(), [&](const auto& other) {
    if (other.second.IsOverdue(now)) return false;
    const bool is_idle = other.second.waiting.empty() && now - other.second.last > kLately;
    return is_idle || its.used <= std::max(other.second.used, most_used_ - kBehind) + kAhead;
  });
}

void Turns::Count(const void* caller, Duration used, Clock::time_point now) {
  // A caller who has the loop alone owes nobody anything.
  if (!IsShared(now)) return;
  const auto found = callers_.find(caller);
  if (found == callers_.end()) return;
  found->second.used += used;
  most_used_ = std::max(most_used_, found->second.used);
}

void Turns::Wait(const void* caller, std::shared_ptr<TurnTaker> taker) {
  const auto now = now_();
  if (waiting_ == 0 && !IsShared(now)) {
    return boost::asio::post(loop_, [taker = std::move(taker)] { taker->TakeTurn(); });
  }
  Find(caller, now).waiting.push_back({std::move(taker), now});
  ++waiting_;
  Schedule();
}

Turns::Caller& Turns::Find(const void* caller, Clock::time_point now) {
  if (callers_.size() >= kManyCallers && !callers_.contains(caller)) {
    std::erase_if(callers_, [now](const auto& entry) {
      return entry.second.waiting.empty() && now - entry.second.last > kLately;
    });
  }
  Caller& its = callers_[caller];
  its.used = std::max(its.used, most_used_ - kBehind);
  return its;
}

Turns::Caller* Turns::Next(Clock::time_point now) {
  Caller* next = nullptr;
  for (auto& entry : callers_) {
    Caller& caller = entry.second;
    if (caller.waiting.empty()) continue;
    const bool is_overdue = caller.IsOverdue(now);
    const auto before = [&](const Caller& other) {
      if (is_overdue != other.IsOverdue(now)) return is_overdue;
      return is_overdue ? caller.waiting.front().since < other.waiting.front().since
                        : caller.used < other.used;
    };
    if (next == nullptr || before(*next)) next = &caller;
  }
  return next;
}

void Turns::Schedule() {
  // Posted work runs after everything that has arrived by now, so a caller who may begin does not wait.
  if (waiting_ > 0 && !std::exchange(scheduled_, true)) boost::asio::post(loop_, [this] { Run(); });
}

void Turns::Run() {
  scheduled_ = false;
  auto now = now_();
  const auto until = now + kSharedTurn;
  do {
    Caller* const next = Next(now);
    if (next == nullptr) return;
    const std::shared_ptr<TurnTaker> taker = std::move(next->waiting.front().taker);
    next->waiting.pop_front();
    --waiting_;
    is_turn_ = true;
    taker->TakeTurn();
    is_turn_ = false;
    now = now_();
  } while (now < until);
  Schedule();
}

}  // namespace kvstore::server::resp
