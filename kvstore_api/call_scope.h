#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "absl/status/status.h"

namespace kvstore {

/// How long a call may take, and whether its caller has cancelled it. A value; what it points to must outlive
/// the calls.
struct CallLimits {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline;
  const std::atomic<bool>* cancelled = nullptr;  ///< Becomes true when the caller cancels; null: never.
  /// Whether a call waits in its thread, and is retried, when its dataset migrates (backend_api/outcome.h).
  /// If false, it fails at once, or those entries of a batch do that were refused; for callers that retry
  /// themselves.
  bool waits = true;
};

/// Limits all calls of a KVStore that this thread makes during the scope's lifetime:
///
///   const CallScope scope(std::chrono::milliseconds(50));
///   auto row = store->GetRow("events", "user:7", {});   // DEADLINE_EXCEEDED if it takes longer
///
/// A scope inside another one can only narrow its limits. A call that exceeds them ends at the next check:
/// between two rows or statements, or, waiting for a server, within 50 ms. A write that ends so has changed
/// nothing, unless IsInDoubt (in_doubt.h) says otherwise. The limits also apply over the network: the server
/// is told how much time is left.
class CallScope {
 public:
  explicit CallScope(CallLimits::Clock::duration timeout);
  explicit CallScope(const CallLimits& limits);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  /// The limits in force in this thread, for handing them to other threads that do a part of the call.
  static const CallLimits& Current();

 private:
  const CallLimits before_;
};

/// Returns DEADLINE_EXCEEDED or CANCELLED if the call of this thread must end; else OK. Costs nothing without
/// limits.
[[nodiscard]] absl::Status CheckCall();

/// Returns the earlier of the call's deadline and `time`.
CallLimits::Clock::time_point EarlierDeadline(CallLimits::Clock::time_point time);

}  // namespace kvstore
