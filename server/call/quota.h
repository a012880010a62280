#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/metrics_sink.h"

namespace kvstore::server {

/// The limits of one caller on a server, or of all callers together on one dataset. 0: there is no limit.
struct QuotaLimits {
  uint64_t calls_per_s = 0;
  uint64_t bytes_per_s = 0;  ///< The size of requests and answers, about as they are on the wire.
  uint64_t max_calls = 0;    ///< In flight.

  bool operator==(const QuotaLimits&) const = default;
};

/// Counts something that may happen so often a second. The part that was not used is kept for one second, so
/// a second's worth may come at once (the generic cell rate algorithm of ATM). Thread-safe.
class Rate {
 public:
  using Clock = std::chrono::steady_clock;

  /// per_s  0: there is no limit. Another limit than before begins anew: nothing was taken.
  void Set(uint64_t per_s);
  /// Takes as much, unless it has to wait. Returns whether it was taken.
  bool TryTake(uint64_t amount, Clock::time_point now);
  /// Takes as much in any case. Later takers wait for longer then, but for no more than a day.
  void Take(uint64_t amount, Clock::time_point now);
  /// Returns for how long as much has to wait. More than a second's worth waits until nothing is owed.
  Clock::duration Wait(uint64_t amount, Clock::time_point now) const;

 private:
  /// Returns the time in which as much may be taken; the limit must not be 0.
  static int64_t CostNs(uint64_t amount, uint64_t per_s);
  static int64_t WaitNs(int64_t owed, int64_t cost);

  std::atomic<uint64_t> per_s_{0};
  std::atomic<int64_t> due_ns_{0};  // by Clock: when all that was taken would have been taken at this rate
};

/// Keeps the limits of one caller, or of one dataset. Thread-safe.
class Quota {
 public:
  using Clock = Rate::Clock;
  enum Limit : uint8_t { kCallsPerS, kBytesPerS, kMaxCalls };
  /// Why a call is turned away.
  struct Refusal {
    Limit limit;
    Clock::duration wait;
  };

  /// subject  What error messages say of it: "caller 'web'".
  explicit Quota(std::string subject) : subject_(std::move(subject)) {}

  /// Sets the limits that hold from now on.
  void Set(const QuotaLimits& limits);
  /// Returns whether there are any. Where there are none nothing has to be counted.
  bool is_limited() const { return is_limited_.load(std::memory_order_relaxed); }

  /// Counts a call in, until Release, and the bytes of its request. If a limit is reached nothing is counted.
  std::optional<Refusal> Admit(size_t bytes, Clock::time_point now);
  void Release() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  /// Returns what Admit would return.
  std::optional<Refusal> Check(Clock::time_point now) const;
  /// Takes a call that does not count as in flight.
  std::optional<Refusal> TakeCall(Clock::time_point now);
  /// Returns RESOURCE_EXHAUSTED, with RetryAfter, which names the limit.
  absl::Status Error(const Refusal& refusal) const;
  /// Counts, for Describe, a call that has ended with such an error.
  void CountRefused(Limit limit) { refused_.at(limit).fetch_add(1, std::memory_order_relaxed); }
  /// Counts further bytes of a call that is in flight.
  void Take(size_t bytes, Clock::time_point now) { bytes_rate_.Take(bytes, now); }
  /// Returns whether further bytes may be sent now.
  bool MaySend(Clock::time_point now) const { return bytes_rate_.Wait(0, now) == Clock::duration::zero(); }

  /// Tells how many calls were turned away, by the limit.
  ///
  /// label, value  Of the figures: {"caller", "web"}.
  void Describe(MetricsSink& sink, const std::string& label, const std::string& value) const;

 private:
  /// Returns the limit of a rate that is reached.
  std::optional<Refusal> CheckRates(Clock::time_point now) const;

  const std::string subject_;
  std::atomic<bool> is_limited_{false};
  std::array<std::atomic<uint64_t>, 3> most_{};  // by Limit
  std::atomic<uint64_t> calls_{0};
  Rate calls_rate_;
  Rate bytes_rate_;
  std::array<std::atomic<uint64_t>, 3> refused_{};  // by Limit
};

/// Returns when it makes sense to make a call again that a quota has turned away; nothing for other errors.
std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& error);

}  // namespace kvstore::server
