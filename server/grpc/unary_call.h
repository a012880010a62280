#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "kvstore_api/in_doubt.h"
#include "kvstore_api/moved.h"
#include "server/call.h"
#include "server/incoming.h"
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

  /// bytes  that the request takes.
  absl::Status Enter(size_t bytes) {
    bool sync = false;
    if constexpr (requires { request_.sync(); }) sync = request_.sync();
    return Call::Enter(DatasetOf(request_), bytes, sync);
  }

  /// Does what is asked, and counts and logs the call as ended: how large the answer is. Nothing: its dataset
  /// moves, and it is to be held and made again (Call::HoldUntilAgain).
  std::optional<size_t> Make(absl::Status& status) {
    {
      const CallScope scope(Limits(/*stream=*/false));
      // Of what was begun some may be done.
      status = unfinished_.places.empty() ? CheckStart() : absl::OkStatus();
      const bool known = status.ok() && !begun_ && IsKnown(status);
      if (status.ok() && !known) {
        status = HandleAny(core_, principal_.get(), request_, response_, unfinished_);
        const absl::Status& moving = status.ok() ? unfinished_.moving : status;
        if (CanHold(moving)) {
          if (Holds(moving)) return std::nullopt;
          if (!status.ok()) status = WithoutHold(status);
        }
      }
    }
    if (begun_) Remember(status);
    const size_t bytes = status.ok() ? response_.ByteSizeLong() : 0;
    Answered(bytes);
    End(status);
    return bytes;
  }

 private:
  absl::Status CheckStart() const {
    auto status = CheckLimits();
    return status.ok() ? CheckRoom() : status;
  }

  /// Whether the call is over without being carried out, because of an attempt before it or because it cannot
  /// be one; `status` is its end then.
  bool IsKnown(absl::Status& status) {
    if constexpr (requires { request_.attempt(); }) {
      if (request_.attempt().request_id().empty()) return false;
      auto known = Begin(request_.attempt());
      if (known) status = *std::move(known);
      return known.has_value();
    }
    return false;
  }

  /// The store itself knows the creates that it has carried out.
  bool IsStored() const { return operation_ == Operation::kCreateObject; }

  /// The end of the call, if an attempt before it was carried out, or may have been.
  std::optional<absl::Status> Begin(const v1::Attempt& attempt) {
    if (attempt.request_id().size() != kRequestIdBytes) {
      return absl::InvalidArgumentError("attempt.request_id: has " +
                                        std::to_string(attempt.request_id().size()) + " bytes, not " +
                                        std::to_string(kRequestIdBytes));
    }
    // Of one length, so that no two of them are spelled alike.
    id_ = static_cast<char>(operation_);
    id_ += attempt.request_id();
    const bool repeated = !attempt.instance().empty() && !IsStored();
    const bool another = repeated && attempt.instance() != core_.instance;
    std::optional<RequestMemory::Repeated> before;
    if (repeated && !another) {
      before.emplace();
      if (attempt.has_sent_us()) before->sent = core_.epoch + std::chrono::microseconds(attempt.sent_us());
    }
    RequestMemory::Answer answer;
    // Nobody is told the answer to somebody else.
    switch (core_.memory.Begin(CallerName(), id_, answer, before)) {
      case RequestMemory::State::kRunning:
        return Refused(absl::UnavailableError("the attempt before has not ended yet"));
      case RequestMemory::State::kAnswered:
        if (answer.status.ok() && !response_.ParseFromString(answer.response)) {
          return absl::InternalError("an answer that was kept does not decode");
        }
        return answer.partial ? MakeWhole() : answer.status;
      case RequestMemory::State::kForgotten:
        return MarkInDoubt(
            absl::UnavailableError("the server has had so many writes since that it does not know any more "
                                   "what became of the attempt "
                                   "before: the write may or may not have happened"));
      case RequestMemory::State::kNew:
        break;
    }
    if (another) {
      core_.memory.End(CallerName(), id_, std::nullopt);
      return MarkInDoubt(absl::UnavailableError(
          "the server was restarted, or is another one, and does not know what became of the attempt before: "
          "the write may or may not have happened"));
    }
    begun_ = true;
    return std::nullopt;
  }

  /// Keeps the end of what was begun, for an attempt after it.
  void Remember(const absl::Status& status) {
    // What failed for certain may be tried again; so may what the store knows.
    if (!status.ok() && (!IsInDoubt(status) || IsStored())) {
      return core_.memory.End(CallerName(), id_, std::nullopt);
    }
    RequestMemory::Answer answer{.status = status, .response = "", .partial = false};
    if (status.ok()) {
      if constexpr (kHasObject) answer.partial = response_.object().data().size() > kMaxKeptData;
      if (answer.partial) {
        answer.response = WithoutData(response_);
      } else {
        answer.response = response_.SerializeAsString();
      }
    }
    core_.memory.End(CallerName(), id_, std::move(answer));
  }

  /// A larger object is not kept with the answer that has it: a few of them would push out all other answers.
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

  /// Of an answer that was kept without its object: that is read, and is the one unless it was written since.
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
        absl::UnavailableError("the attempt before was carried out, and its answer cannot be given again: "
                               "the object is too large to "
                               "be kept, and was changed since or cannot be read now"));
  }

  const Request& request_;
  Response& response_;
  Unfinished unfinished_;
  std::string id_;      // in the memory of requests
  bool begun_ = false;  // there
};

/// A call with one request and one answer, as gRPC hands it over: the request is read when it is known who
/// calls. Counted until the client has the answer. Deletes itself.
template <typename Request, typename Response>
class UnaryReactor final : public grpc::ServerBidiReactor<Incoming<Request>, Response> {
 public:
  UnaryReactor(Core& core, Operation operation, grpc::CallbackServerContext& context)
      : call_(core, operation, context, incoming_.message, response_) {}

  void Start() {
    call_.Track();
    // Anybody may ask which server this is.
    constexpr bool kOfAnybody = std::is_same_v<Request, v1::GetServerRequest>;
    const absl::Status status = kOfAnybody ? call_.EnterOfAnybody() : call_.Greet();
    if (!status.ok()) return Refuse(status);
    // There is nothing in these requests: they are not read.
    if constexpr (kOfAnybody || std::is_same_v<Request, v1::GetMetricsRequest>) return Take();
    call_.WaitForClient();
    this->StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) override {
    call_.GoOn();
    if (!ok) return Refuse(NoRequest());
    if (!incoming_.status.ok()) return Refuse(incoming_.status);
    Take();
  }
  void OnCancel() override { call_.MarkCancelled(); }
  void OnDone() override {
    // All that Send came behind: gRPC has handed it over, in code that ThreadSanitizer does not see.
    if (sent_.load(std::memory_order_acquire)) delete this;
  }

  void Take() {
    if (auto status = call_.Enter(incoming_.memory); !status.ok()) return Refuse(status);
    call_.Run([this] { Make(); });
  }
  void Make() {
    absl::Status status;
    if (!call_.Make(status)) return call_.HoldUntilAgain([this] { Make(); });
    Send(status);
  }
  void Refuse(const absl::Status& status) {
    call_.End(status);
    // It is not counted, and the client may take its time to hear this.
    incoming_.message = {};
    Send(status);
  }
  void Send(const absl::Status& status) {
    call_.WaitForClient();
    sent_.store(true, std::memory_order_release);
    if (!status.ok()) return this->Finish(wire::ToWire(status));
    this->StartWriteAndFinish(&response_, {}, grpc::Status::OK);
  }

  Incoming<Request> incoming_;
  std::atomic<bool> sent_{false};
  Response response_;
  UnaryCall<Request, Response> call_;
};

}  // namespace kvstore::server
