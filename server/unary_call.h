#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kvstore_api/in_doubt.h"
#include "server/call.h"
#include "server/special_handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

/// A call with one request and one answer.
template <typename Request, typename Response>
class UnaryCall : public Call {
 public:
  UnaryCall(Core& core, Operation operation, grpc::CallbackServerContext& context, const Request& request,
            Response& response, std::optional<Part> part = {})
      : Call(core, operation, context, part), request_(request), response_(response) {}

  absl::Status Enter() {
    bool sync = false;
    if constexpr (requires { request_.sync(); }) sync = request_.sync();
    return Call::Enter(DatasetOf(request_), request_.ByteSizeLong(), sync);
  }

  /// Does what is asked, and counts and logs the call as ended. How large the answer is.
  size_t Make(absl::Status& status) {
    {
      const CallScope scope(Limits(/*stream=*/false));
      status = Work();
    }
    const size_t bytes = status.ok() ? response_.ByteSizeLong() : 0;
    Answered(bytes);
    End(status);
    return bytes;
  }

 private:
  absl::Status Work() {
    if (auto status = CheckCall(); !status.ok()) return status;
    if constexpr (requires { request_.attempt(); }) {
      if (!request_.attempt().request_id().empty()) return WorkOnce();
    }
    return HandleAny(core_, principal_.get(), request_, response_);
  }

  /// Unless it was done in an attempt before.
  absl::Status WorkOnce() {
    const v1::Attempt& attempt = request_.attempt();
    if (attempt.request_id().size() != kRequestIdBytes) {
      return absl::InvalidArgumentError("attempt.request_id: has " +
                                        std::to_string(attempt.request_id().size()) + " bytes, not " +
                                        std::to_string(kRequestIdBytes));
    }
    // Nobody is told the answer to somebody else.
    const std::string id =
        std::string(Traits(operation_).name) + attempt.request_id() + (principal_ ? principal_->name : "");
    RequestMemory::Answer answer;
    switch (core_.memory.Begin(id, answer)) {
      case RequestMemory::State::kRunning:
        return Refused(absl::UnavailableError("the attempt before has not ended yet"));
      case RequestMemory::State::kAnswered:
        if (answer.status.ok() && !response_.ParseFromString(answer.response)) {
          return absl::InternalError("an answer that was kept does not decode");
        }
        return answer.status;
      case RequestMemory::State::kNew:
        break;
    }
    // The store itself knows the creates that it has carried out.
    const bool stored = operation_ == Operation::kCreateObject;
    if (!attempt.instance().empty() && attempt.instance() != core_.instance && !stored) {
      core_.memory.End(id, std::nullopt);
      return MarkInDoubt(absl::UnavailableError(
          "the server was restarted, or is another one, and does not know what became of the attempt before: "
          "the write may or may not have happened"));
    }
    const absl::Status status = HandleAny(core_, principal_.get(), request_, response_);
    // What failed for certain may be tried again; so may what the store knows.
    if (status.ok() || (IsInDoubt(status) && !stored)) {
      core_.memory.End(id, RequestMemory::Answer{status, status.ok() ? response_.SerializeAsString() : ""});
    } else {
      core_.memory.End(id, std::nullopt);
    }
    return status;
  }

  const Request& request_;
  Response& response_;
};

/// A call that is made on a worker, or whose answer is large: counted until the client has the answer.
/// Deletes itself.
template <typename Made>
class TrackedCall : public grpc::ServerUnaryReactor {
 public:
  explicit TrackedCall(std::unique_ptr<Made> call) : call_(std::move(call)) { call_->Track(); }

  void MakeOnWorker() {
    call_->Run([this] {
      absl::Status status;
      call_->Make(status);
      Send(status);
    });
  }
  void Send(const absl::Status& status) {
    call_->WaitForClient();
    Finish(wire::ToWire(status));
  }

 private:
  void OnCancel() override { call_->MarkCancelled(); }
  void OnDone() override { delete this; }

  const std::unique_ptr<Made> call_;
};

/// Makes a call: what is quick at once, on this thread.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* MakeUnary(Core& core, Operation operation, grpc::CallbackServerContext& context,
                                    const Request& request, Response& response) {
  // gRPC's own reactor is quicker, but does not say when the answer has left: it is for small ones.
  constexpr size_t kSmallAnswer = size_t{16} << 10;
  using Made = UnaryCall<Request, Response>;
  auto call = std::make_unique<Made>(core, operation, context, request, response);
  absl::Status status = call->Enter();
  if (status.ok() && !call->RunsHere()) {
    auto* tracked = new TrackedCall<Made>(std::move(call));
    tracked->MakeOnWorker();
    return tracked;
  }
  if (!status.ok()) {
    call->End(status);
  } else if (call->Make(status) > kSmallAnswer) {
    auto* tracked = new TrackedCall<Made>(std::move(call));
    tracked->Send(status);
    return tracked;
  }
  call.reset();
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  reactor->Finish(wire::ToWire(status));
  return reactor;
}

}  // namespace kvstore::server
