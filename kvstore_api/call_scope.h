#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "absl/status/status.h"

namespace kvstore {

/// How long a call may take, and whether anybody still waits for it. A value; what it points to must outlive
/// the calls.
struct CallLimits {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline;
  const std::atomic<bool>* cancelled = nullptr;  ///< Null: nobody cancels.
  /// False: a call that meets a dataset that moves (moved.h) is told so at once, and does not wait in its
  /// thread; of a batch, those entries are told so that met the move. For who makes them again himself.
  bool waits = true;
};

/// Puts limits on all calls of a KVStore that this thread makes while it lives:
///
///   const CallScope scope(std::chrono::milliseconds(50));
///   auto row = store->GetRow("events", "user:7", {});   // DEADLINE_EXCEEDED if it takes longer
///
/// A scope inside another can only be narrower. A call that is over its limits ends soon and not at once:
/// between two rows, statements or attempts. A write that it ends may or may not have happened. Also over the
/// network: the server gets what is left of the time.
class CallScope {
 public:
  explicit CallScope(CallLimits::Clock::duration timeout);
  explicit CallScope(const CallLimits& limits);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  /// What is in force in this thread; to be handed on to other threads that do a part of a call.
  static const CallLimits& Current();

 private:
  const CallLimits before_;
};

/// Whether the call of this thread may go on: DEADLINE_EXCEEDED or CANCELLED if not. Costs nothing without
/// limits.
[[nodiscard]] absl::Status CheckCall();

/// The earlier of the call's deadline and this time.
CallLimits::Clock::time_point EarlierDeadline(CallLimits::Clock::time_point time);
/// What is left of the call's time, but no more than this.
CallLimits::Clock::duration LeftOfCall(CallLimits::Clock::duration most);

}  // namespace kvstore
