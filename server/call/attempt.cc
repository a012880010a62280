#include "server/call/attempt.h"

#include <utility>

#include "backend_api/outcome.h"
#include "kvstore_api/limits.h"
#include "server/call/call.h"

namespace kvstore::server {

std::optional<absl::Status> Attempt::Begin(std::string_view caller, const Claims& claims,
                                           RequestMemory::Answer& answer) {
  if (claims.request_id.size() != kRequestIdBytes) {
    return absl::InvalidArgumentError("attempt.request_id: has " + std::to_string(claims.request_id.size()) +
                                      " bytes, not " + std::to_string(kRequestIdBytes));
  }
  caller_ = caller;
  // All IDs of a protocol have one length, and those of two protocols have two, so that operation and ID, and
  // the forms in which the protocols keep answers, cannot be confused.
  id_ = static_cast<char>(operation_);
  if (door_ != Door::kGrpc) id_ += static_cast<char>(door_);
  id_ += claims.request_id;
  const bool repeated = !claims.instance.empty() && !IsStored();
  const bool another = repeated && claims.instance != core_.instance;
  std::optional<RequestMemory::Repeated> before;
  if (repeated && !another) {
    before.emplace();
    if (claims.sent) before->sent = core_.epoch + *claims.sent;
  }
  switch (core_.memory.Begin(caller_, id_, answer, before)) {
    case RequestMemory::State::kRunning:
      return MarkRefused(absl::UnavailableError("an earlier attempt of this write has not ended yet"));
    case RequestMemory::State::kAnswered:
      return answer.status;
    case RequestMemory::State::kForgotten:
      return MarkInDoubt(absl::UnavailableError(
          "the server has had so many writes since that it does not know any more "
          "what became of the earlier attempt: the write may or may not have happened"));
    case RequestMemory::State::kNew:
      break;
  }
  if (another) {
    core_.memory.End(caller_, id_, std::nullopt);
    return MarkInDoubt(
        absl::UnavailableError("the server was restarted, or is another one, and does not know what became "
                               "of the earlier attempt: "
                               "the write may or may not have happened"));
  }
  begun_ = true;
  return std::nullopt;
}

void Attempt::Remember(const absl::Status& status, RequestMemory::Answer answer) {
  begun_ = false;
  // A call that failed for certain may be retried, and so may one that the store itself remembers.
  if (!status.ok() && (!IsInDoubt(status) || IsStored())) return core_.memory.End(caller_, id_, std::nullopt);
  answer.status = status;
  core_.memory.End(caller_, id_, std::move(answer));
}

}  // namespace kvstore::server
