#include "server/call/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace kvstore::server {
namespace {

constexpr char kRetryAfterPayload[] = "kvstore/retry-after-ms";
/// How much may come at once: what is due within this time.
constexpr int64_t kBurstNs = 1'000'000'000;
/// The most that is owed: a day's worth.
constexpr int64_t kMostOwedNs = 86'400 * kBurstNs;
/// When a call that found too many others in flight may be made again: nobody knows when they end.
constexpr std::chrono::milliseconds kRetryAfterOthers{50};

constexpr std::array<std::string_view, 3> kNames = {"calls_per_s", "bytes_per_s", "max_calls"};
constexpr std::array<std::string_view, 3> kWords = {"calls a second", "bytes a second", "calls in flight"};

int64_t Ns(Rate::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

int64_t Rate::CostNs(uint64_t amount, uint64_t per_s) {
  const double cost = static_cast<double>(amount) * 1e9 / static_cast<double>(per_s);
  return static_cast<int64_t>(std::min(cost, static_cast<double>(kMostOwedNs)));
}

int64_t Rate::WaitNs(int64_t owed, int64_t cost) {
  return owed <= 0 ? 0 : std::max<int64_t>(0, owed + std::min(cost, kBurstNs) - kBurstNs);
}

void Rate::Set(uint64_t per_s) {
  if (per_s_.exchange(per_s, std::memory_order_relaxed) != per_s) due_ns_.store(0, std::memory_order_relaxed);
}

bool Rate::TryTake(uint64_t amount, Clock::time_point now) {
  const uint64_t per_s = per_s_.load(std::memory_order_relaxed);
  if (per_s == 0) return true;
  const int64_t now_ns = Ns(now);
  const int64_t cost = CostNs(amount, per_s);
  int64_t due = due_ns_.load(std::memory_order_relaxed);
  do {
    if (WaitNs(due - now_ns, cost) > 0) return false;
  } while (!due_ns_.compare_exchange_weak(due, std::max(due, now_ns) + cost, std::memory_order_relaxed));
  return true;
}

void Rate::Take(uint64_t amount, Clock::time_point now) {
  const uint64_t per_s = per_s_.load(std::memory_order_relaxed);
  if (per_s == 0) return;
  const int64_t now_ns = Ns(now);
  const int64_t cost = CostNs(amount, per_s);
  int64_t due = due_ns_.load(std::memory_order_relaxed);
  while (!due_ns_.compare_exchange_weak(due, std::min(std::max(due, now_ns) + cost, now_ns + kMostOwedNs),
                                        std::memory_order_relaxed)) {
  }
}

Rate::Clock::duration Rate::Wait(uint64_t amount, Clock::time_point now) const {
  const uint64_t per_s = per_s_.load(std::memory_order_relaxed);
  if (per_s == 0) return {};
  const int64_t owed = due_ns_.load(std::memory_order_relaxed) - Ns(now);
  return std::chrono::nanoseconds(WaitNs(owed, CostNs(amount, per_s)));
}

void Quota::Set(const QuotaLimits& limits) {
  calls_rate_.Set(limits.calls_per_s);
  bytes_rate_.Set(limits.bytes_per_s);
  most_.at(kCallsPerS).store(limits.calls_per_s, std::memory_order_relaxed);
  most_.at(kBytesPerS).store(limits.bytes_per_s, std::memory_order_relaxed);
  most_.at(kMaxCalls).store(limits.max_calls, std::memory_order_relaxed);
  is_limited_.store(limits != QuotaLimits{}, std::memory_order_relaxed);
}

std::optional<Quota::Refusal> Quota::CheckRates(Clock::time_point now) const {
  if (const auto wait = bytes_rate_.Wait(0, now); wait > wait.zero()) return Refusal{kBytesPerS, wait};
  if (const auto wait = calls_rate_.Wait(1, now); wait > wait.zero()) return Refusal{kCallsPerS, wait};
  return std::nullopt;
}

std::optional<Quota::Refusal> Quota::Check(Clock::time_point now) const {
  const uint64_t most = most_.at(kMaxCalls).load(std::memory_order_relaxed);
  if (most != 0 && calls_.load(std::memory_order_relaxed) >= most) {
    return Refusal{kMaxCalls, kRetryAfterOthers};
  }
  return CheckRates(now);
}

std::optional<Quota::Refusal> Quota::TakeCall(Clock::time_point now) {
  if (auto refusal = CheckRates(now)) return refusal;
  // Another call may have taken the last one meanwhile.
  if (!calls_rate_.TryTake(1, now)) return Refusal{kCallsPerS, calls_rate_.Wait(1, now)};
  return std::nullopt;
}

std::optional<Quota::Refusal> Quota::Admit(size_t bytes, Clock::time_point now) {
  const uint64_t most = most_.at(kMaxCalls).load(std::memory_order_relaxed);
  std::optional<Refusal> refusal;
  if (calls_.fetch_add(1, std::memory_order_relaxed) >= most && most != 0) {
    refusal = Refusal{kMaxCalls, kRetryAfterOthers};
  } else {
    refusal = TakeCall(now);
  }
  if (refusal) {
    Release();
  } else {
    bytes_rate_.Take(bytes, now);
  }
  return refusal;
}

absl::Status Quota::Error(const Refusal& refusal) const {
  const auto ms = std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(refusal.wait).count());
  absl::Status error = absl::ResourceExhaustedError(
      fmt::format("{}: is at its limit of {} {}; try again in {} ms", subject_,
                  most_.at(refusal.limit).load(std::memory_order_relaxed), kWords.at(refusal.limit), ms));
  error.SetPayload(kRetryAfterPayload, absl::Cord(std::to_string(ms)));
  return error;
}

void Quota::Describe(MetricsSink& sink, const std::string& label, const std::string& value) const {
  for (size_t i = 0; i < kNames.size(); ++i) {
    sink.Counter("kvstore_calls_limited_total",
                 "Calls turned away because their caller, or their dataset, was at a limit of its own",
                 {{label, value}, {"limit", std::string(kNames.at(i))}},
                 static_cast<double>(refused_.at(i).load(std::memory_order_relaxed)));
  }
}

std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& error) {
  const auto payload = error.GetPayload(kRetryAfterPayload);
  int64_t ms = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &ms)) return std::nullopt;
  return std::chrono::milliseconds(ms);
}

}  // namespace kvstore::server
