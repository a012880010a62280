#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/call_streams.h"
#include "client/channels.h"
#include "client/options.h"
#include "kvstore_api/call_scope.h"
#include "wire/calls.h"

namespace kvstore::client {

/// What the server says of an error that it made (kvstore-outcome); empty: it comes from the way to it.
std::string OutcomeOf(const grpc::ClientContext& context);

/// Makes calls: with deadline, token, and attempts until one has an outcome. Thread-safe.
class Caller {
 public:
  using Clock = CallLimits::Clock;

  static absl::StatusOr<std::unique_ptr<Caller>> Open(const std::string& address,
                                                      const ConnectOptions& options);

  v1::KVStore::StubInterface& Stub() const { return channels_->Stub(); }
  v1::Endpoints::StubInterface& Endpoints() const { return channels_->Endpoints(); }
  const std::string& address() const { return channels_->address(); }

  /// One attempt of a call.
  class Try {
   public:
    Try(const Caller& caller, Clock::time_point deadline) : caller_(caller), deadline_(deadline) {}

    /// For a call of its own.
    grpc::ClientContext& Context();
    Clock::time_point deadline() const { return deadline_; }
    /// Of a call over a stream.
    void SetOutcome(std::string outcome) { outcome_ = std::move(outcome); }
    /// What the server says of an error that it made; empty: it comes from the way to it.
    std::string outcome() const;

   private:
    const Caller& caller_;
    const Clock::time_point deadline_;
    std::optional<grpc::ClientContext> context_;
    std::string outcome_;
  };

  /// Makes a call that changes nothing, or that gives the same when it is made again.
  template <typename Request, typename Response>
  absl::Status Read(grpc::Status (v1::KVStore::StubInterface::*method)(grpc::ClientContext*, const Request&,
                                                                       Response*),
                    const Request& request, Response& response) {
    const CallStreams::Entered entered(streams_);
    return Repeat([&](Try& attempt) { return Make(entered.streamed(), method, request, response, attempt); });
  }

  /// Makes a call that writes: the attempts carry one request ID.
  template <typename Request, typename Response>
  absl::Status Write(grpc::Status (v1::KVStore::StubInterface::*method)(grpc::ClientContext*, const Request&,
                                                                        Response*),
                     Request& request, Response& response) {
    const CallStreams::Entered entered(streams_);
    return RepeatWrite(*request.mutable_attempt(), [&](Try& attempt) {
      return Make(entered.streamed(), method, request, response, attempt);
    });
  }

  /// Sets up the context of a call.
  ///
  /// deadline  none: no deadline.
  void Prepare(grpc::ClientContext& context, std::optional<Clock::time_point> deadline) const;

  using Attempt = std::function<grpc::Status(Try&)>;
  /// Makes an attempt, and again as long as it fails on the way or is turned away.
  absl::Status Repeat(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/false); }
  /// The same for what must not be done twice, nor later than it seems: again only if it was turned away.
  absl::Status Once(const Attempt& attempt) const { return Repeat(attempt, /*writes=*/true); }

  /// What a failed call means: its error, and whether to make it again.
  struct Verdict {
    bool again = false;
    absl::Status status;
  };
  /// outcome  that the server has said.
  /// writes   where it failed on its way, it may have happened.
  Verdict Judge(const grpc::Status& status, const std::string& outcome, bool writes) const;
  /// INTERNAL: the server has answered something else than what it was asked.
  ///
  /// what  in words, as "answered fewer entries than were sent".
  absl::Status Nonsense(std::string_view what) const;
  /// The same for a page with more entries than the limit, and for one that says that there is more and does
  /// not go on: it ends where it began, or has no entries. A page of a row may have none where the server has
  /// looked at much that is deleted; who reads page after page of one sets a deadline.
  ///
  /// asked, next  the markers of the request and of the answer.
  absl::Status CheckPage(int entries, size_t limit, std::string_view asked, std::string_view next,
                         bool may_be_empty = false) const;
  /// Waits before another attempt, longer after each; false if there is no time left for it.
  ///
  /// attempt   how many there were, less one.
  /// deadline  none: there is always time.
  bool Pause(int attempt, std::optional<Clock::time_point> deadline) const;

 private:
  /// A request that is larger is a call of its own.
  static constexpr size_t kMaxStreamed = size_t{64} << 10;

  Caller(std::unique_ptr<Channels> channels, ConnectOptions options);

  absl::Status Repeat(const Attempt& attempt, bool writes) const;
  template <typename Request, typename Response>
  grpc::Status Make(bool streamed,
                    grpc::Status (v1::KVStore::StubInterface::*method)(grpc::ClientContext*, const Request&,
                                                                       Response*),
                    const Request& request, Response& response, Try& attempt) {
    response.Clear();
    if constexpr (wire::Streamed<Request>) {
      if (streamed && request.ByteSizeLong() <= kMaxStreamed) {
        v1::Call call;
        wire::CallKind<Request>::In(call) = request;
        v1::Answer answer;
        const grpc::Status status = MakeStreamed(std::move(call), answer, attempt);
        if (status.ok()) response.Swap(&wire::CallKind<Request>::In(answer));
        if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) return status;
      }
    }
    const grpc::Status status = (Stub().*method)(&attempt.Context(), request, &response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) streams_.AskAgain();
    return status;
  }
  grpc::Status MakeStreamed(v1::Call call, v1::Answer& answer, Try& attempt);

  absl::Status RepeatWrite(v1::Attempt& names, const Attempt& attempt);
  /// Asks the server for its clock, and notes when by that the write was sent first; if it is the same
  /// server.
  void Date(v1::Attempt& names, Clock::time_point sent);
  Clock::time_point Deadline() const;
  /// GetServerResponse.instance of the server that was met last; asked for if none was.
  absl::StatusOr<std::string> Instance();

  const std::unique_ptr<Channels> channels_;
  const ConnectOptions options_;
  const CallStream::Metadata metadata_;
  CallStreams streams_;  // over channels_
  std::mutex mutex_;
  std::string instance_;  // of the server that was met last; guarded by mutex_
};

}  // namespace kvstore::client
