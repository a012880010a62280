#pragma once

#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "backend_api/outcome.h"
#include "base/fail_point.h"
#include "server/call/attempt.h"
#include "server/call/call.h"
#include "server/call/ends_elsewhere.h"
#include "server/grpc/grpc_transport.h"
#include "server/grpc/incoming.h"
#include "server/grpc/special_handlers.h"
#include "server/grpc/unary_handler.h"
#include "wire/convert.h"

namespace kvstore::server {

/// A call with one request and one answer, whether it has an RPC of its own (UnaryReactor) or is part of a
/// stream (MultiplexedCalls).
template <typename Request, typename Response>
class UnaryCall : public Call {
 public:
  UnaryCall(Core& core, Operation operation, const CallInfo& info, const Request& request, Response& response)
      : Call(core, operation, info),
        request_(request),
        response_(response),
        attempt_(core, operation, info.door) {}

  /// size  The size of the request.
  absl::Status Admit(RequestSize size) {
    bool sync = false;
    if constexpr (requires { request_.sync(); }) sync = request_.sync();
    if constexpr (requires { request_.options().limit(); }) {
      if (request_.options().limit() > kMaxQuickEntries) MarkAskingForMuch();
    }
    if constexpr (requires { request_.options().offset(); }) {
      if (request_.options().offset() > kMaxQuickEntries) MarkAskingForMuch();
    }
    return Call::Admit(DatasetOf(request_), size, sync, ReportOf(request_));
  }

  /// Carries the call out, and counts and logs its end. Returns the size of the answer; nothing if its
  /// dataset migrates, and the call is to be suspended and retried (Call::SuspendUntilRetry).
  std::optional<size_t> Execute(absl::Status& status) {
    {
      const CallScope scope(Limits(/*stream=*/false));
      if (Begin(status)) {
        status = HandleAny(core_, principal_.get(), request_, response_, unfinished_);
        if (!Accept(status)) return std::nullopt;
      }
    }
    return Conclude(status);
  }

  // ---- the steps of Execute, for calls that are carried out together ----

  /// Returns whether the call is to be carried out now. If not, `status` is what it ends with. In a scope of
  /// its limits.
  bool Begin(absl::Status& status) {
    // A batch that has begun goes on, because some of it may be done.
    status = unfinished_.places.empty() ? CheckStart() : absl::OkStatus();
    if (!status.ok() || (!attempt_.begun() && IsKnown(status))) return false;
    Reached(Traits(operation_).name);
    return true;
  }
  /// Takes what the store has said, which may become another error. Returns false if the call is to be
  /// suspended.
  bool Accept(absl::Status& status) {
    const absl::Status& migrating = status.ok() ? unfinished_.migrating : status;
    if (!CanRetryAfter(migrating)) return true;
    if (ShouldSuspend(migrating)) return false;
    if (!status.ok()) status = ErrorWithoutSuspension(status);
    return true;
  }
  /// Counts and logs the end. Returns the size of the answer.
  size_t Conclude(const absl::Status& status) {
    if (attempt_.begun()) Remember(status);
    const size_t bytes = status.ok() ? response_.ByteSizeLong() : 0;
    CountResponse(bytes);
    End(status);
    return bytes;
  }
  const Request& request() const { return request_; }
  Response& response() { return response_; }
  /// Returns the limits of its work.
  const CallLimits& limits() { return Limits(/*stream=*/false); }

 private:
  /// Returns whether the call ends without being carried out, because of an earlier attempt or because its
  /// request ID is no valid one. Then `status` is what it ends with.
  bool IsKnown(absl::Status& status) {
    if constexpr (requires { request_.attempt(); }) {
      if (request_.attempt().request_id().empty()) return false;
      auto known = BeginAttempt(request_.attempt());
      if (known) status = *std::move(known);
      return known.has_value();
    }
    return false;
  }

  /// Returns what the call ends with, if an earlier attempt was carried out, or may have been.
  std::optional<absl::Status> BeginAttempt(const v1::Attempt& attempt) {
    Attempt::Claims claims{.request_id = attempt.request_id(), .instance = attempt.instance(), .sent = {}};
    if (attempt.has_sent_us()) {
      // Nothing was sent later than now, and a time far in the future does not fit into nanoseconds.
      const auto now =
          std::chrono::duration_cast<std::chrono::microseconds>(RequestMemory::Clock::now() - core_.epoch);
      const uint64_t sent_us = std::min<uint64_t>(attempt.sent_us(), static_cast<uint64_t>(now.count()));
      claims.sent = std::chrono::microseconds(sent_us);
    }
    RequestMemory::Answer answer;
    auto known = attempt_.Begin(CallerName(), claims, answer);
    if (!known || !known->ok()) return known;
    if (!response_.ParseFromString(answer.response))
      return absl::InternalError("an answer that was kept does not decode");
    return answer.partial ? MakeWhole() : *known;
  }

  /// Keeps the end of a call that BeginAttempt noted, for retries.
  void Remember(const absl::Status& status) {
    RequestMemory::Answer answer;
    if (status.ok()) {
      if constexpr (kHasObject) answer.partial = response_.object().data().size() > kMaxKeptData;
      answer.response = answer.partial ? WithoutData(response_) : response_.SerializeAsString();
    }
    attempt_.Remember(status, std::move(answer));
  }

  /// Answers are kept without a larger object, because a few of those would push out all other answers.
  static constexpr size_t kMaxKeptData = 1024;
  static constexpr bool kHasObject = std::is_same_v<Response, v1::UpdateObjectResponse>;

  static std::string WithoutData(const Response& response) {
    Response kept;
    if constexpr (kHasObject) {
      kept.mutable_object()->set_id(response.object().id());
      kept.mutable_object()->set_timestamp(response.object().timestamp());
    }
    return kept.SerializeAsString();
  }

  /// Reads the object of an answer that was kept without it. The answer is whole if the object was not
  /// written since.
  absl::Status MakeWhole() {
    if constexpr (kHasObject) {
      auto read =
          core_.router.GetObject(DatasetOf(request_), response_.object().id(), {.include_inactive = true});
      if (read.ok() && read->timestamp == response_.object().timestamp()) {
        wire::ToWire(*std::move(read), *response_.mutable_object());
        return absl::OkStatus();
      }
    }
    return MarkInDoubt(
        absl::UnavailableError("an earlier attempt was carried out, and its answer cannot be given again: "
                               "the object is too large to be "
                               "kept, and was changed since or cannot be read now"));
  }

  const Request& request_;
  Response& response_;
  Unfinished unfinished_;
  Attempt attempt_;
};

/// An RPC with one request and one answer. The request is read after the caller was authenticated, and the
/// call counts until the client has the answer. Deletes itself.
template <typename Request, typename Response>
class UnaryReactor final : public grpc::ServerUnaryReactor {
 public:
  /// opening, response  Must outlive it.
  UnaryReactor(Core& core, Operation operation, grpc::CallbackServerContext& context,
               Opening<Request>& opening, Response& response)
      : transport_(context),
        opening_(opening),
        call_(core, operation, transport_.Info(), opening.incoming.message, response) {}

  void Start() {
    call_.Track();
    // GetServer is for anybody.
    constexpr bool kForAnybody = std::is_same_v<Request, v1::GetServerRequest>;
    const absl::Status status = kForAnybody ? call_.AdmitAnybody() : call_.Authenticate();
    if (!status.ok()) return Refuse(status);
    // These requests are empty, so they are not read.
    if constexpr (kForAnybody || std::is_same_v<Request, v1::GetMetricsRequest>) return AdmitAndRun();
    call_.MarkWaitingForClient();
    StartRead();
  }

 private:
  /// Has the request read, and OnReadDone called, which must be before the call is finished.
  void StartRead() {
    read_done_.Set(
        opening_.call.call(), [this](bool ok) { OnReadDone(ok); }, &read_, /*can_inline=*/false);
    read_.set_core_cq_tag(&read_done_);
    read_.RecvMessage(&opening_.incoming);
    made_.store(true, std::memory_order_release);
    opening_.call.PerformOps(&read_);
  }
  void OnReadDone(bool ok) {
    // Acquires what the thread did that has made this call. gRPC orders the two as well, in code that
    // ThreadSanitizer does not see; the same in OnDone.
    static_cast<void>(made_.load(std::memory_order_acquire));
    call_.MarkClientResponded();
    if (!ok) return Refuse(MissingRequestError());
    if (!opening_.incoming.status.ok()) return Refuse(opening_.incoming.status);
    AdmitAndRun();
  }
  void OnCancel() override { call_.MarkCancelled(); }
  void OnDone() override {
    // Acquires what happened before Send.
    if (sent_.load(std::memory_order_acquire)) delete this;
  }
  /// OnCancel and OnDone do so little that gRPC need not have another thread call them; but OnDone takes
  /// locks.
  bool InternalInlineable() override { return !EndsElsewhere::Wanted(); }

  void AdmitAndRun() {
    if (auto status = call_.Admit(opening_.incoming.size); !status.ok()) return Refuse(status);
    call_.Run([this] { Execute(); });
  }
  void Execute() {
    absl::Status status;
    if (!call_.Execute(status)) return call_.SuspendUntilRetry([this] { Execute(); });
    Send(status);
  }
  void Refuse(const absl::Status& status) {
    call_.End(status);
    // A refused request is not counted, and its client may take its time to receive the error.
    opening_.incoming.message = {};
    Send(status);
  }
  void Send(const absl::Status& status) {
    call_.MarkWaitingForClient();
    sent_.store(true, std::memory_order_release);
    this->Finish(status.ok() ? grpc::Status::OK : wire::ToWire(status));
  }

  GrpcTransport transport_;
  Opening<Request>& opening_;
  grpc::internal::CallOpSet<grpc::internal::CallOpRecvMessage<Incoming<Request>>> read_;
  grpc::internal::CallbackWithSuccessTag read_done_;
  std::atomic<bool> made_{false};
  std::atomic<bool> sent_{false};
  UnaryCall<Request, Response> call_;
};

}  // namespace kvstore::server
