#pragma once

#include <grpcpp/server_context.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/migrations.h"
#include "kvstore_api/router.h"
#include "server/access.h"
#include "server/admission.h"
#include "server/brief_calls.h"
#include "server/call_log.h"
#include "server/held_calls.h"
#include "server/metrics.h"
#include "server/operation.h"
#include "server/options.h"
#include "server/request_memory.h"
#include "server/worker_pool.h"

namespace kvstore::server {

class Call;

/// The calls that are open, so that those whose clients take nothing can be ended. Thread-safe.
class OpenCalls {
 public:
  void Add(Call& call);
  void Remove(Call& call);
  /// Cancels the calls that have waited for their clients since before this time.
  void CancelStalled(std::chrono::steady_clock::time_point before);
  /// Tells them that the server stops: Call::Drain.
  void Drain();

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::mutex mutex;
    Call* first = nullptr;  // guarded by mutex, as the links of its calls
  };
  std::array<Stripe, kStripes> stripes_;
};

/// What all calls of a server share.
struct Core {
  Core(Router& store, Migrations* moving, const ServerOptions& wanted, std::unique_ptr<Access> list);

  Router& router;
  Migrations* const migrations;  ///< Null: none are made here.
  const ServerOptions options;
  const std::string instance;  ///< GetServerResponse.instance.
  /// Where GetServerResponse.clock_us begins; not at zero, which says nothing.
  const RequestMemory::Clock::time_point epoch = RequestMemory::Clock::now() - std::chrono::seconds(1);
  const bool shares_catalog;  ///< With other processes.
  const std::unique_ptr<Access> access;
  Admission admission;
  BriefCalls anonymous{1'000};  ///< Of anybody: which server this is, and whether it serves.
  BriefCalls greetings{1'000};  ///< Of who is known: which server this is.
  BriefCalls figures{32};       ///< GetMetrics.
  RequestMemory memory;
  Metrics metrics;
  CallLog log;
  OpenCalls open;
  std::atomic<bool> draining{false};
  WorkerPool workers;
  HeldCalls held;  ///< Last, so that it ends first.
};

/// What a call has of its own that came with others over one stream.
struct Part {
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< None: the server's limit alone.
  const std::atomic<bool>* cancelled = nullptr;                   ///< The stream's.
  bool tells_moving = false;                                      ///< Call.tell_moving.
};

/// One call from its start to its end: who makes it, whether it is let in, its limits, how it is counted and
/// logged. What kind of call it is, is added by the classes derived.
class Call {
 public:
  using Clock = std::chrono::steady_clock;

  /// context  of the stream, if the call is a part of one.
  Call(Core& core, Operation operation, grpc::CallbackServerContext& context, std::optional<Part> part = {});
  virtual ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// From now on, and no longer, it can be cancelled from outside; for calls that last. gRPC's part of a call
  /// is gone when OnDone returns: what lives on after that is not tracked any more.
  void Track();
  void Untrack();
  void Cancel() { context_.TryCancel(); }
  /// The server stops. Of a call that would go on for as long as its client likes.
  virtual void Drain() {}
  void MarkCancelled() { cancelled_.store(true, std::memory_order_relaxed); }

  /// Whether a message of who calls may be taken at all: asked before a byte of it is read. Enter does not
  /// ask again who it is.
  absl::Status Greet();

  /// Lets in, for a few seconds, a call that anybody may make; who is known does not wait for strangers.
  /// RESOURCE_EXHAUSTED: there are too many.
  absl::Status EnterOfAnybody();
  /// Whether who calls may still do so. Costs nothing where everybody may.
  absl::Status CheckCaller();
  /// Counts bytes that are in memory for a caller who was greeted, beside those of its calls, for as long as
  /// what is returned lives; null: there is no room for them.
  std::shared_ptr<void> HoldBytes(size_t bytes);

  /// Runs on a worker, or, for what is quick, here.
  void Run(std::function<void()> work);
  bool RunsHere() const { return Traits(operation_).quick && !waits_; }
  /// A write that waits for nothing but its turn: neither for another machine nor for the device.
  bool RunsInTurn() const { return Traits(operation_).right == Right::kWrite && !waits_ && !flushes_; }

  /// Whether the call can be made again after `status`: it is one on data, and nothing was done of what was
  /// told that its dataset moves. Others may have begun, and would find their own work.
  bool CanHold(const absl::Status& status) const;
  /// Whether the call, which was told `moving` (moved.h), is to be held, by HoldUntilAgain, and made again;
  /// else it ends with what it was told.
  bool Holds(const absl::Status& moving);
  /// It is to be held behind another one, without a try.
  void HoldBehind();
  /// Has `again` called on a worker when the call is to be made again. It then is anybody's: this may be
  /// gone.
  void HoldUntilAgain(std::function<void()> again);
  /// Of one that is held: it is to be made again now in any case, and ends then.
  bool IsDue(Clock::time_point now) const;
  std::string_view dataset() const { return dataset_; }

  /// Counts and logs the end, and says in the trailing metadata, if it is no part, what the error leaves
  /// behind. Before Finish.
  void End(const absl::Status& status);
  /// What that is: wire::kRefused, kInDoubt, kMoved or kFailed.
  static const char* OutcomeOf(const absl::Status& error);

  /// From now on, or no longer, only the client keeps the call from going on.
  void WaitForClient() {
    waiting_since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  void GoOn() { waiting_since_.store(0, std::memory_order_relaxed); }

 protected:
  /// Whether the call may be made; if not, why.
  ///
  /// bytes  of the request.
  /// sync   the caller wants the write on stable storage, whatever the dataset's durability.
  absl::Status Enter(std::string_view dataset, size_t bytes, bool sync = false);
  /// By which what is the caller's own is kept. After Enter.
  const std::string& CallerName() const { return share_->name; }
  /// Of one that lasts: whether its caller may still make it, by the list that is in force now.
  absl::Status CheckStillAllowed();
  /// Whether another answer may be made: the caller has not taken all of its share with those that it does
  /// not take.
  bool HasRoom() const;
  /// As an error: nothing was done.
  absl::Status CheckRoom() const;
  /// Has `again` called on a worker when there may be room, or the call has to end. As HoldUntilAgain.
  void HoldForRoom(std::function<void()> again);
  /// The limits of the work; hold them in a CallScope. They do not change once they were asked for.
  const CallLimits& Limits(bool stream);
  /// Whether the call, in a scope of these, may go on (CheckCall); else what it was held for is told, too.
  absl::Status CheckLimits() const;
  /// It has come further: from now on it has the whole time again to be held in.
  void EndHold() { held_since_.reset(); }
  /// What to tell the client of a call that was not carried out, because its dataset moves, and is not held.
  absl::Status WithoutHold(const absl::Status& moving) const;
  /// So many bytes of answers were made, and are in memory until Sent.
  void Answered(size_t bytes);
  void Sent(size_t bytes);
  /// A further request of the same call has come, in place of the one before. RESOURCE_EXHAUSTED: there is no
  /// room for it.
  absl::Status Took(size_t bytes);

  /// Whether the client is gone.
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  Core& core_;
  const Operation operation_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<const Principal> principal_;
  std::string dataset_;

 private:
  friend class OpenCalls;

  /// Has the call count among these, to its end. RESOURCE_EXHAUSTED: they are too many.
  absl::Status EnterAmong(BriefCalls& others);
  absl::Status Identify();
  /// Of the client's certificate, which was checked; empty: it has none.
  std::string CommonName() const;
  /// Whether the client wants to be told at once that a dataset moves.
  bool TellsMoving() const;
  /// Whether a call of a server with the same catalog is for the backend that has the dataset.
  absl::Status CheckBackend(std::string_view dataset) const;

  const std::optional<Part> part_;
  const Clock::time_point begun_ = Clock::now();
  std::string_view backend_;
  bool waits_ = false;
  bool flushes_ = false;
  bool greeted_ = false;
  bool entered_ = false;
  BriefCalls* among_ = nullptr;
  CallerShare* share_ = nullptr;  // of who made the call, as soon as that is known
  size_t request_bytes_ = 0;      // of all requests
  size_t current_request_ = 0;    // in memory
  size_t held_bytes_ = 0;         // of answers, not sent yet
  size_t response_bytes_ = 0;     // of all answers
  std::atomic<bool> cancelled_{false};
  std::atomic<Clock::rep> waiting_since_{0};
  std::optional<CallLimits> limits_;
  std::optional<Clock::time_point> held_since_;
  Clock::time_point held_until_;
  std::string held_for_;  // what it was told last when it was held
  bool tracked_ = false;
  size_t stripe_ = 0;
  Call* previous_ = nullptr;
  Call* next_ = nullptr;
};

/// What a call is told for which there is no room.
absl::Status NoRoom();

/// An error of a call that was turned away before anything was done.
absl::Status Refused(absl::Status status);

}  // namespace kvstore::server
