#pragma once

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "router/router.h"
#include "server/call/access.h"
#include "server/call/admission.h"
#include "server/call/brief_calls.h"
#include "server/call/call_history.h"
#include "server/call/call_info.h"
#include "server/call/call_log.h"
#include "server/call/call_quotas.h"
#include "server/call/change_feed.h"
#include "server/call/connections.h"
#include "server/call/lane.h"
#include "server/call/metrics.h"
#include "server/call/operation.h"
#include "server/call/options.h"
#include "server/call/parts.h"
#include "server/call/request_memory.h"
#include "server/call/suspended_calls.h"
#include "server/call/worker_pool.h"

namespace kvstore::server {

class Call;

/// The open calls, so that those whose clients take nothing can be ended. Thread-safe.
class OpenCalls {
 public:
  void Add(Call& call);
  void Remove(Call& call);
  /// Cancels the calls that have waited for their clients since before this time.
  void CancelStalled(std::chrono::steady_clock::time_point before);
  /// Calls Call::Drain for each of them.
  void Drain();
  /// Describes at most so many of them, the oldest first: "GetRow for 12.3 s".
  std::vector<std::string> Describe(size_t most);
  /// Returns whether an authenticated call is open over the connection of this peer.
  bool HasKnown(const std::string& peer);

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Stripe {
    Mutex mutex;  // also guards the links of the stripe's calls
    Call* first ABSL_GUARDED_BY(mutex) = nullptr;
  };
  std::array<Stripe, kStripes> stripes_;
};

/// The state that all calls of a server share.
struct Core {
  Core(Router& store, const ServerOptions& wanted, std::unique_ptr<Access> list, ServerParts others);

  Router& router;
  const ServerParts parts;  ///< Calls on one that is null are refused.
  const ServerOptions options;
  const std::string instance;  ///< GetServerResponse.instance.
  /// The origin of GetServerResponse.clock_us, where zero would mean that the server says nothing. Therefore
  /// it is a second in the past.
  const RequestMemory::Clock::time_point epoch = RequestMemory::Clock::now() - std::chrono::seconds(1);
  const bool shares_catalog;  ///< Whether other processes use the same catalog.
  const std::unique_ptr<Access> access;
  Admission admission;
  BriefCalls stranger_probes{1'000};  ///< GetServer and health checks of anybody.
  BriefCalls caller_probes{1'000};    ///< GetServer of authenticated callers, who do not wait for strangers.
  BriefCalls metrics_calls{32};       ///< GetMetrics.
  RequestMemory memory;
  Metrics metrics;
  CallHistory history;
  CallLog log;
  OpenCalls open;
  /// Watches connections only where callers are authenticated.
  Connections connections{[this](const std::string& peer) { return open.HasKnown(peer); }};
  std::atomic<bool> draining{false};
  CallerShare strangers{""};  ///< The queues of all callers who are not authenticated.
  WorkerPool workers;         ///< For writes, and for short calls that may wait.
  /// For reads that are long: few, so that they leave the processors to all that is short.
  WorkerPool long_workers;
  /// For calls on reports, each of which may take its worker for long, or wait on it: other calls do not wait
  /// behind them.
  WorkerPool report_workers;
  /// Operations on shards that are under way. They may last for hours, and none waits behind another or
  /// behind calls on data: an emergency promotion must begin while all other workers wait for a host that is
  /// gone.
  static constexpr size_t kMaxShardOperations = 16;
  std::atomic<size_t> shard_operations{0};
  WorkQueue shard_work;
  WorkerPool shard_workers;
  // Destroyed first, because they use the others.
  SuspendedCalls suspended;
  ChangeFeed changes;
};

/// The size of a request.
struct RequestSize {
  size_t bytes = 0;   ///< On the wire.
  size_t memory = 0;  ///< In memory, roughly.
};

/// One call from its start to its end: its caller, its admission, its limits, and how it is counted and
/// logged. Derived classes add what the call does, and how its messages are read and sent.
///
/// The order is: Authenticate before a byte of the request is read, Admit when it was read, the work within
/// Limits, End, and then the answer. Externally synchronised, but for MarkCancelled and what is called by
/// OpenCalls.
class Call {
 public:
  using Clock = CallInfo::Clock;

  /// info  Its transport must outlive the call.
  Call(Core& core, Operation operation, const CallInfo& info);
  virtual ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// From Track to Untrack, or the call's end, it is one of Core::open and can be cancelled from outside.
  /// This is for calls that last. The transport must not be used any more when the protocol has ended the
  /// call (for gRPC: when OnDone returns), so a call that lives longer is untracked there.
  void Track();
  void Untrack();
  void Cancel() { info_.transport.Cancel(); }
  /// Told that the server stops. Calls that would last as long as their clients like override it.
  virtual void Drain() {}
  void MarkCancelled() { cancelled_.store(true, std::memory_order_relaxed); }

  /// Finds out who calls, before a byte of the request is read; Admit asks again only if the list of callers
  /// has changed since. An error means that the call must end with it: UNAVAILABLE if the server stops,
  /// UNAUTHENTICATED if the caller is not known.
  absl::Status Authenticate();

  /// Admits, for a few seconds, a call that anybody may make, in place of Authenticate. Known callers and
  /// strangers have limits of their own. RESOURCE_EXHAUSTED if there are too many.
  absl::Status AdmitAnybody();
  /// Authenticates the caller of a stream again, by the list that is in force now. Costs nothing where
  /// everybody may do everything.
  absl::Status CheckCaller();
  /// Counts bytes that are in memory for a caller beside those of its calls, as long as the returned object
  /// lives. Returns null if there is no room for them; there is none for a stranger.
  std::shared_ptr<void> ReserveBytes(size_t bytes);
  /// The same, whether there is room for them or not; never null.
  std::shared_ptr<void> HoldBytes(size_t bytes);
  /// Returns what is counted of the caller in all of its calls; null: the caller is not known.
  CallerShare* share() const { return share_; }
  /// Returns whether a call of the caller, who must be known, would be admitted with a request of so many
  /// bytes.
  bool CallerMayCall(size_t bytes) const {
    return core_.admission.MayAdmit(*share_, bytes) &&
           (!share_->quota.is_limited() || !share_->quota.Check(Clock::now()));
  }
  /// Returns whether the caller, who must be known, is within its share of the bytes.
  bool CallerHasRoom() const { return core_.admission.HasRoom(*share_, 0); }

  /// Runs the work: on this thread if it is quick (RunsInline), else on a worker, or on one of those for
  /// reports or for operations on shards. The caller must be known.
  void Run(Work work);
  /// Runs a part of the call's work on a worker, when it is the caller's turn.
  void Post(Work work) { WorkerLane().Post(std::move(work)); }
  /// Returns whether a worker that has carried out a part of the call's work may go on with the next one at
  /// once, in place of Post: nothing waits for a worker. Post would wake another one, whose processor has
  /// none of the call's data in its caches.
  bool KeepsWorker();
  /// Returns where Post has work done. While the caller is not known, strangers share the queues.
  Lane WorkerLane();
  bool RunsInline() const { return IsShort() && !waits_; }
  /// The request asks for so much that the call is not quick, whatever its operation.
  void MarkAskingForMuch() { asks_for_much_ = true; }
  /// Returns whether it is a write that waits neither for another machine nor for the device, so that several
  /// of them can run one after the other on one worker.
  bool RunsInTurn() const { return Traits(operation_).right == Right::kWrite && !waits_ && !flushes_; }
  /// Returns whether the thread that has received such a write may carry it out, if it then need not wait
  /// (PromptScope): its caller has not so much in flight that its calls take turns with those of others.
  bool RunsInTurnHere() const { return RunsInTurn() && !CallerHasMany(); }
  /// Returns whether it is a write that waits for the device, and not for another machine.
  bool WaitsForDevice() const { return Traits(operation_).right == Right::kWrite && !waits_ && flushes_; }
  /// Returns whether it may wait for another machine or, as a write, for the device. After Admit.
  bool MayWait() const { return waits_ || (Traits(operation_).right != Right::kRead && flushes_); }

  /// Returns whether the call may be retried after `status`: it is one on data, its dataset migrates, and
  /// nothing was done. (Operations on datasets as a whole may have begun, and would meet their own work.)
  bool CanRetryAfter(const absl::Status& status) const;
  /// Returns whether the call, which failed with `migrating` (backend_api/outcome.h), is to be suspended by
  /// SuspendUntilRetry. If not, it ends with that error. Remembers since when it waits, and for what.
  bool ShouldSuspend(const absl::Status& migrating);
  /// The call is going to be suspended behind another one, without having been tried.
  void SuspendBehind();
  /// Has `retry` run on a worker when the call is to be retried. From here on the call belongs to that: it
  /// may be gone when this returns.
  void SuspendUntilRetry(Work retry);
  /// Returns whether a suspended call must be retried now in any case; it ends then.
  bool IsDue(Clock::time_point now) const;
  std::string_view dataset() const { return dataset_; }

  /// Says in the log what the call asks for, beside its operation; for calls whose operation does not say it.
  void SetWhat(std::string what) { what_ = std::move(what); }
  /// Logs that the call begins, if its end will be logged in any case. After Admit.
  void LogBegin();
  /// Counts and logs the end, and tells the client what the error leaves behind, unless the call is part of a
  /// stream. To be called before its answer or error is sent.
  void End(const absl::Status& status);
  /// Returns what an error has left behind.
  static CallOutcome OutcomeOf(const absl::Status& error);

  /// From here on, until MarkClientResponded, the call waits for nothing but its client: OpenCalls cancels it
  /// when that takes too long.
  void MarkWaitingForClient() {
    waiting_since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  void MarkClientResponded() { waiting_since_.store(0, std::memory_order_relaxed); }

 protected:
  /// Checks the caller's right on the dataset, and counts the call in. An error means that the call must end
  /// with it; it says why.
  ///
  /// size    The size of the request.
  /// sync    The caller wants the write on stable storage, whatever the dataset's durability.
  /// report  The report of the dataset that the call is about: a right on it is enough. Empty: none.
  absl::Status Admit(std::string_view dataset, RequestSize size, bool sync = false,
                     std::string_view report = {});
  /// Returns whether the work may begin, in a scope of the call's limits: it may have waited for long, and
  /// the caller may have lost its right meanwhile. May set another principal_.
  absl::Status CheckStart();
  /// Returns the name under which the caller's answers are remembered. After Admit.
  const std::string& CallerName() const { return share_->name; }
  /// Checks, for a call that lasts, the caller and its right (on dataset_, and report_) again, by the list
  /// that is in force now.
  absl::Status CheckStillAllowed();
  /// Returns whether another answer may be made: false while answers that the caller does not take fill its
  /// share.
  bool HasRoom() const;
  /// The same as an error, which says that nothing was done.
  absl::Status CheckRoom() const;
  /// Returns whether a stream may go on now, by the limits of bytes a second of its caller and of its
  /// dataset. If not, SuspendForRoom. UNAVAILABLE if the server stops, which does not wait for that.
  absl::StatusOr<bool> MayGoOn() const;
  /// Counts bytes against these limits.
  void TakeFromQuotas(size_t bytes) { quotas_.Take(bytes); }
  /// Has `retry` run on a worker when there may be room, or the call has to end. Else as SuspendUntilRetry.
  void SuspendForRoom(Work retry);
  /// Returns whether calls that last as long as their clients like may go on: UNAVAILABLE if the server
  /// stops.
  absl::Status CheckServes() const;
  /// Has `retry` run on a worker when something is written after a token of dataset_ (ChangeFollower), after
  /// a second, or when the call has to end. Else as SuspendUntilRetry.
  void SuspendForChanges(const std::string& token, Work retry);
  /// Returns the limits of the work, for a CallScope. They do not change after the first time.
  ///
  /// stream  The server's limit of a call's duration does not apply.
  const CallLimits& Limits(bool stream);
  /// Returns whether the call may go on (CheckCall), in a scope of its limits. The error also says what the
  /// call was suspended for.
  absl::Status CheckLimits() const;
  /// The call has made progress: when it is suspended next it may wait for the whole time again.
  void EndSuspension() { suspended_since_.reset(); }
  /// Returns the error of a call that was not carried out because its dataset migrates, and is not suspended.
  absl::Status ErrorWithoutSuspension(const absl::Status& migrating) const;
  /// Counts an answer of so many bytes, which is in memory until CountSent.
  void CountResponse(size_t bytes);
  void CountSent(size_t bytes);
  /// Counts another request of the same call, in place of the last one. RESOURCE_EXHAUSTED if there is no
  /// room for it.
  absl::Status ReplaceRequest(RequestSize size);

  /// Becomes true when the client is gone.
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  Core& core_;
  const Operation operation_;
  const CallInfo info_;
  std::shared_ptr<const Principal> principal_;
  std::string dataset_;
  std::string report_;  // that the call is about now

 private:
  friend class OpenCalls;

  /// Counts the call among these until its end. RESOURCE_EXHAUSTED if they are too many.
  absl::Status AdmitAsBrief(BriefCalls& others);
  /// Returns whether the caller has so many calls in flight that they take turns with those of others.
  bool CallerHasMany() const;
  /// Returns whether the call is quick, but for what it may wait for.
  bool IsShort() const { return Traits(operation_).quick && !asks_for_much_ && !CallerHasMany(); }
  /// Returns where the call is carried out when it does not run inline.
  Lane OwnLane();
  /// Sets principal_ and share_.
  absl::Status Identify();
  /// Tells the watch over gRPC's connections that a caller who is known, or a stranger, has called.
  void TellConnections(bool known);
  /// Returns whether the client wants an error at once where the dataset migrates.
  bool WantsMigrationError() const;
  /// Returns what the log says of the call so far.
  CallRecord Record() const;
  /// Checks that a call of another server with the same catalog is meant for the backend that has the
  /// dataset.
  absl::Status CheckBackend(std::string_view dataset) const;

  std::string_view backend_;
  bool waits_ = false;
  bool flushes_ = false;
  bool asks_for_much_ = false;
  std::atomic<uint64_t> authenticated_by_{0};  // Access::version; 0: not yet
  bool admitted_ = false;
  BriefCalls* brief_ = nullptr;
  CallQuotas quotas_;
  CallerShare* share_ = nullptr;  // the caller's, as soon as that is known
  size_t request_bytes_ = 0;      // of all requests
  size_t current_request_ = 0;    // what the request that is in memory takes there
  size_t unsent_bytes_ = 0;       // of answers
  size_t response_bytes_ = 0;     // of all answers
  std::atomic<bool> cancelled_{false};
  std::atomic<Clock::rep> waiting_since_{0};
  std::optional<CallLimits> limits_;
  std::optional<Clock::time_point> suspended_since_;
  Clock::time_point suspended_until_;
  std::string suspended_for_;  // the last error that it was suspended for
  std::string what_;           // of the log
  bool tracked_ = false;
  size_t stripe_ = 0;
  Call* previous_ = nullptr;
  Call* next_ = nullptr;
};

/// Returns the error of a call for which there is no room.
absl::Status TooManyInFlightError();

/// Marks the error of a call that was turned away before anything was done (CallOutcome::kRefused).
absl::Status MarkRefused(absl::Status status);

}  // namespace kvstore::server
