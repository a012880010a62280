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
/// When a call that found too many others in flight may be made again: nobody knows when they end.
constexpr std::chrono::milliseconds kRetryAfterOthers{50};

constexpr std::array<std::string_view, 3> kNames = {"calls_per_s", "bytes_per_s", "max_calls"};
constexpr std::array<std::string_view, 3> kWords = {"calls a second", "bytes a second", "calls in flight"};

int64_t Ns(Rate::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

int64_t Rate::CostNs(uint64_t amount, uint64_t per_s) {
  return static_cast<int64_t>(static_cast<double>(amount) * 1e9 / static_cast<double>(per_s));
}

bool Rate::TryTake(uint64_t amount, Clock::time_point now) {
  const uint64_t per_s = per_s_.load(std::memory_order_relaxed);
  if (per_s == 0) return true;
  const int64_t now_ns = Ns(now);
  int64_t due = due_ns_.load(std::memory_order_relaxed);
  do {
    if (due - now_ns >= kBurstNs) return false;
  } while (!due_ns_.compare_exchange_weak(due, std::max(due, now_ns) + CostNs(amount, per_s),
                                          std::memory_order_relaxed));
  return true;
}

void Rate::Take(uint64_t amount, Clock::time_point now) {
  const uint64_t per_s = per_s_.load(std::memory_order_relaxed);
  if (per_s == 0) return;
  const int64_t now_ns = Ns(now);
  int64_t due = due_ns_.load(std::memory_order_relaxed);
  while (!due_ns_.compare_exchange_weak(due, std::max(due, now_ns) + CostNs(amount, per_s),
                                        std::memory_order_relaxed)) {
  }
}

Rate::Clock::duration Rate::Wait(Clock::time_point now) const {
  if (per_s_.load(std::memory_order_relaxed) == 0) return {};
  const int64_t beyond = due_ns_.load(std::memory_order_relaxed) - Ns(now) - kBurstNs;
  // At the end of the burst exactly nothing may be taken yet.
  return beyond < 0 ? Clock::duration::zero() : Clock::duration(std::chrono::nanoseconds(beyond + 1));
}

void Quota::Set(const QuotaLimits& limits) {
  calls_rate_.Set(limits.calls_per_s);
  bytes_rate_.Set(limits.bytes_per_s);
  calls_per_s_.store(limits.calls_per_s, std::memory_order_relaxed);
  bytes_per_s_.store(limits.bytes_per_s, std::memory_order_relaxed);
  max_calls_.store(limits.max_calls, std::memory_order_relaxed);
  is_limited_.store(limits != QuotaLimits{}, std::memory_order_relaxed);
}

absl::Status Quota::Admit(size_t bytes, Clock::time_point now) {
  const uint64_t most = max_calls_.load(std::memory_order_relaxed);
  const auto refuse = [&](Limit limit, uint64_t value, Clock::duration wait) {
    Release();
    return Refuse(limit, value, wait);
  };
  if (calls_.fetch_add(1, std::memory_order_relaxed) >= most && most != 0) {
    return refuse(kMaxCalls, most, kRetryAfterOthers);
  }
  if (const auto wait = bytes_rate_.Wait(now); wait > Clock::duration::zero()) {
    return refuse(kBytesPerS, bytes_per_s_.load(std::memory_order_relaxed), wait);
  }
  if (!calls_rate_.TryTake(1, now)) {
    return refuse(kCallsPerS, calls_per_s_.load(std::memory_order_relaxed), calls_rate_.Wait(now));
  }
  bytes_rate_.Take(bytes, now);
  return absl::OkStatus();
}

bool Quota::MayAdmit(Clock::time_point now) const {
  const uint64_t most = max_calls_.load(std::memory_order_relaxed);
  return (most == 0 || calls_.load(std::memory_order_relaxed) < most) && MaySend(now) &&
         calls_rate_.Wait(now) == Clock::duration::zero();
}

absl::Status Quota::Refuse(Limit limit, uint64_t most, Clock::duration wait) {
  refused_.at(limit).fetch_add(1, std::memory_order_relaxed);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  absl::Status error = absl::ResourceExhaustedError(
      fmt::format("{}: is at its limit of {} {}; try again in {} ms", subject_, most, kWords.at(limit), ms));
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
