#pragma once

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>
#include <utility>

#include "kvstore_api/in_doubt.h"
#include "server/call.h"
#include "server/special_handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

/// A call with one request and one answer. Deletes itself.
template <typename Request, typename Response>
class UnaryCall : public grpc::ServerUnaryReactor, private Call {
 public:
  UnaryCall(Core& core, Operation operation, grpc::CallbackServerContext& context, const Request& request,
            Response& response)
      : Call(core, operation, context), request_(request), response_(response) {}

  void Start() {
    const absl::Status status = Enter(DatasetOf(request_), request_.ByteSizeLong());
    if (!status.ok()) return Answer(status);
    Run([this] {
      const CallScope scope(Limits(/*stream=*/false));
      Answer(Work());
    });
  }

 private:
  void OnCancel() override { MarkCancelled(); }
  void OnDone() override { delete this; }

  void Answer(const absl::Status& status) {
    if (status.ok()) Answered(response_.ByteSizeLong());
    End(status);
    WaitForClient();
    Finish(wire::ToWire(status));
  }

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
    // The store itself knows the creates that it has carried out.
    if (!attempt.instance().empty() && attempt.instance() != core_.instance &&
        operation_ != Operation::kCreateObject) {
      return MarkInDoubt(absl::UnavailableError(
          "the server was restarted, or is another one, and does not know what became of the attempt before: "
          "the write may or may not have happened"));
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
    const absl::Status status = HandleAny(core_, principal_.get(), request_, response_);
    // What failed for certain may be tried again.
    if (status.ok() || IsInDoubt(status)) {
      core_.memory.End(id, RequestMemory::Answer{status, status.ok() ? response_.SerializeAsString() : ""});
    } else {
      core_.memory.End(id, std::nullopt);
    }
    return status;
  }

  const Request& request_;
  Response& response_;
};

}  // namespace kvstore::server
