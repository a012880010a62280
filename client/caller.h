#pragma once

#include <absl/base/thread_annotations.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/cancel_watch.h"
#include "client/channels.h"
#include "client/method.h"
#include "client/stream_pool.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "wire/calls.h"

namespace kvstore::client {

/// Returns random bytes that name a write: kRequestIdBytes of them.
std::string NewRequestId();

/// Makes calls to one server: with deadline and token, and retried until one attempt has an outcome.
/// Thread-safe.
class Caller {
 public:
  using Clock = CallLimits::Clock;

  /// Returns at once; see kvstore::Connect for addresses and errors.
  static absl::StatusOr<std::unique_ptr<Caller>> Open(const std::string& address,
                                                      const ConnectOptions& options);

  v1::KVStore::StubInterface& Stub() const { return channels_->Stub(); }
  v1::Endpoints::StubInterface& Endpoints() const { return channels_->Endpoints(); }
  v1::Reports::StubInterface& Reports() const { return channels_->Reports(); }
  v1::Shards::StubInterface& Shards() const { return channels_->Shards(); }
  const std::string& address() const { return channels_->address(); }

  /// One attempt of a call.
  class Try {
   public:
    Try(const Caller& caller, Clock::time_point deadline) : caller_(caller), deadline_(deadline) {}

    /// Returns the context for an RPC of this attempt. The RPC is cancelled when the caller cancels the call.
    grpc::ClientContext& Context();
    Clock::time_point deadline() const { return deadline_; }
    /// Sets the outcome of an attempt over a stream, which needs no context.
    void SetOutcome(std::string outcome) { outcome_ = std::move(outcome); }
    /// Returns what the server says that its error has left behind ("kvstore-outcome" in kvstore.proto).
    /// Empty: the error is not the server's; the attempt was lost on the way there or back.
    std::string outcome() const;

   private:
    const Caller& caller_;
    const Clock::time_point deadline_;
    std::optional<grpc::ClientContext> context_;
    std::optional<CancelWatch> watch_;  // of context_, which outlives it
    std::string outcome_;
  };

  /// Makes the call of a request. All attempts of a write carry the same request ID, by which the server
  /// knows a retry.
  template <typename Request>
  absl::Status Call(Request& request, ResponseOf<Request>& response) {
    if constexpr (Writes<Request>) {
      const StreamPool::ActiveCall active(streams_);
      return RepeatWrite(*request.mutable_attempt(), [&](Try& attempt) {
        return MakeAttempt(active.streamed(), request, response, attempt);
      });
    } else {
      return Read(request, response);
    }
  }
  /// Makes a call that is idempotent: it changes nothing, or the same when it is made again.
  template <typename Request>
  absl::Status Read(Request& request, ResponseOf<Request>& response) {
    const StreamPool::ActiveCall active(streams_);
    return Repeat([&](Try& attempt) { return MakeAttempt(active.streamed(), request, response, attempt); });
  }

  /// Returns the deadline of a call that begins now: that of its CallScope, else
  /// ConnectOptions::deadline_ms from now.
  Clock::time_point Deadline() const;
  /// Sets the deadline and the metadata of a call's context.
  ///
  /// deadline  Nothing: the call has no deadline.
  void Prepare(grpc::ClientContext& context, std::optional<Clock::time_point> deadline) const;

  using Attempt = std::function<grpc::Status(Try&)>;
  /// Makes attempts until one has an outcome other than being lost on its way or refused, or there is no time
  /// left.
  absl::Status Repeat(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/false); }
  /// As Repeat, for what must not be done twice, nor later than the caller believes: retried only after a
  /// refusal.
  absl::Status Once(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/true); }

  /// The meaning of a failed attempt: its error, and whether to retry.
  struct Verdict {
    bool retry = false;
    bool lost = false;  ///< The attempt was lost on the way there or back.
    absl::Status status;
  };
  /// outcome  What the server says that the error has left behind; see Try::outcome.
  /// writes   The attempt was a write, which is in doubt if it was lost on its way.
  Verdict Classify(const grpc::Status& status, const std::string& outcome, bool writes) const;
  /// Returns INTERNAL, for a server that has answered something else than what it was asked.
  ///
  /// what  What it did, as "answered fewer entries than were sent".
  absl::Status InvalidAnswerError(std::string_view what) const;
  /// Returns that error for a page with more entries than the limit, and for one that says that there is more
  /// but makes no progress: it ends where it began, or has no entries. A page of a row or of a scan may have
  /// no entries where the server has looked at much that is deleted, so a loop over such pages needs a
  /// deadline.
  ///
  /// asked, next    The markers of the request and of the answer.
  /// may_be_empty   Whether it is a page of a row or of a scan.
  absl::Status CheckPage(int entries, size_t limit, std::string_view asked, std::string_view next,
                         bool may_be_empty = false) const;
  /// Waits before a retry, longer after each attempt. Returns false if there is no time left for it.
  ///
  /// attempt   How many attempts there were before the last one.
  /// deadline  Nothing: there is always time.
  bool Pause(int attempt, std::optional<Clock::time_point> deadline) const;
  /// As Pause, after an attempt with this verdict. If the attempt was lost, tells ConnectOptions::on_lost
  /// first.
  bool Pause(const Verdict& verdict, int attempt, std::optional<Clock::time_point> deadline) const;

 private:
  /// A larger request does not go over a stream.
  static constexpr size_t kMaxStreamed = size_t{64} << 10;

  Caller(std::unique_ptr<Channels> channels, ConnectOptions options);

  absl::Status Repeat(const Attempt& attempt, bool writes) const;
  template <typename Request>
  grpc::Status MakeAttempt(bool streamed, Request& request, ResponseOf<Request>& response, Try& attempt) {
    response.Clear();
    if constexpr (wire::Streamed<Request>) {
      if (streamed && request.ByteSizeLong() <= kMaxStreamed) {
        v1::Call call;
        v1::Answer answer;
        wire::CallKind<Request>::Lend(request, call);
        grpc::Status status = AttemptOverStream(call, answer, attempt);
        wire::CallKind<Request>::TakeBack(call);
        if (status.ok()) response.Swap(&wire::CallKind<Request>::In(answer));
        if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) return status;
      }
    }
    grpc::Status status = CallOnce(attempt.Context(), request, response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) streams_.ClearUnsupported();
    return status;
  }
  template <typename Request>
  grpc::Status CallOnce(grpc::ClientContext& context, const Request& request, ResponseOf<Request>& response) {
    if constexpr (requires { Method<Request>::Call(Stub(), &context, request, &response); }) {
      return Method<Request>::Call(Stub(), &context, request, &response);
    } else if constexpr (requires { Method<Request>::Call(Reports(), &context, request, &response); }) {
      return Method<Request>::Call(Reports(), &context, request, &response);
    } else {
      return Method<Request>::Call(Shards(), &context, request, &response);
    }
  }
  grpc::Status AttemptOverStream(v1::Call& call, v1::Answer& answer, Try& attempt);

  absl::Status RepeatWrite(v1::Attempt& names, const Attempt& attempt);
  /// Asks the server for its clock, and sets when the write was sent first by that clock, unless another
  /// server answers.
  void SetSentTime(v1::Attempt& names, Clock::time_point sent);
  /// Returns GetServerResponse.instance of the server that answered last; asks for it if none has.
  absl::StatusOr<std::string> Instance();

  const std::unique_ptr<Channels> channels_;
  const ConnectOptions options_;
  const MultiplexedStream::Metadata metadata_;
  StreamPool streams_;  // over channels_
  Mutex mutex_;
  std::string instance_
      ABSL_GUARDED_BY(mutex_);  // of the server that answered last; empty: must be asked for
};

}  // namespace kvstore::client
