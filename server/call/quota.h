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

/// What one caller may use of a server, or all callers together of one dataset. 0: there is no limit.
struct QuotaLimits {
  uint64_t calls_per_s = 0;
  uint64_t bytes_per_s = 0;  ///< Of requests and answers, on the wire.
  uint64_t max_calls = 0;    ///< In flight.

  bool operator==(const QuotaLimits&) const = default;
};

/// Counts something that may happen so often a second. What was not used is kept for one second, so a
/// second's worth may come at once (the generic cell rate algorithm of ATM). Thread-safe.
class Rate {
 public:
  using Clock = std::chrono::steady_clock;

  /// per_s  0: there is no limit.
  void Set(uint64_t per_s) { per_s_.store(per_s, std::memory_order_relaxed); }
  /// Takes as much, unless nothing more may be taken now. One that is larger than what is left is taken
  /// whole; what follows waits for longer then. Returns whether it was taken.
  bool TryTake(uint64_t amount, Clock::time_point now);
  /// The same, whatever is left.
  void Take(uint64_t amount, Clock::time_point now);
  /// Returns for how long nothing may be taken.
  Clock::duration Wait(Clock::time_point now) const;

 private:
  /// Returns the time in which as much may be taken; the limit must not be 0.
  static int64_t CostNs(uint64_t amount, uint64_t per_s);

  std::atomic<uint64_t> per_s_{0};
  std::atomic<int64_t> due_ns_{0};  // by Clock: when all that was taken would have been taken at this rate
};

/// Keeps the limits of one caller, or of one dataset. Thread-safe.
class Quota {
 public:
  using Clock = Rate::Clock;

  /// subject  What error messages say of it: "caller 'web'".
  explicit Quota(std::string subject) : subject_(std::move(subject)) {}

  /// Sets the limits that hold from now on.
  void Set(const QuotaLimits& limits);
  /// Returns whether there are any. Where there are none nothing has to be counted.
  bool is_limited() const { return is_limited_.load(std::memory_order_relaxed); }

  /// Counts a call in, until Release, and the bytes of its request. RESOURCE_EXHAUSTED, with RetryAfter,
  /// names the limit that is reached; then nothing is counted.
  absl::Status Admit(size_t bytes, Clock::time_point now);
  void Release() { calls_.fetch_sub(1, std::memory_order_relaxed); }
  /// Returns whether Admit would succeed.
  bool MayAdmit(Clock::time_point now) const;
  /// Counts further bytes of a call that is in flight.
  void Take(size_t bytes, Clock::time_point now) { bytes_rate_.Take(bytes, now); }
  /// Returns whether further bytes may be sent now.
  bool MaySend(Clock::time_point now) const { return bytes_rate_.Wait(now) == Clock::duration::zero(); }

  /// Tells how many calls were turned away, by the limit.
  ///
  /// label, value  Of the figures: {"caller", "web"}.
  void Describe(MetricsSink& sink, const std::string& label, const std::string& value) const;

 private:
  enum Limit : uint8_t { kCallsPerS, kBytesPerS, kMaxCalls };
  absl::Status Refuse(Limit limit, uint64_t most, Clock::duration wait);

  const std::string subject_;
  std::atomic<bool> is_limited_{false};
  std::atomic<uint64_t> calls_per_s_{0};  // for messages
  std::atomic<uint64_t> bytes_per_s_{0};
  std::atomic<uint64_t> max_calls_{0};
  std::atomic<uint64_t> calls_{0};
  Rate calls_rate_;
  Rate bytes_rate_;
  std::array<std::atomic<uint64_t>, 3> refused_{};  // by Limit
};

/// Returns when it makes sense to make a call again that a quota has turned away; nothing for other errors.
std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& error);

}  // namespace kvstore::server
