#include "server/resp/run.h"

#include <algorithm>
#include <utility>

#include "server/resp/writes.h"

namespace kvstore::server::resp {
namespace {

/// The answers that a worker makes before they are sent.
constexpr size_t kAnswersTogether = size_t{1} << 20;

size_t BytesOf(const Request& request) {
  size_t bytes = 0;
  for (const std::string_view argument : request.arguments) bytes += argument.size();
  return bytes;
}

}  // namespace

Run::Kind Run::KindOf(const Request& request) {
  if (std::holds_alternative<WritePlan>(request.plan)) {
    return request.call->RunsInTurn() ? Kind::kPuts : Kind::kWaitingPuts;
  }
  return std::holds_alternative<ReadPlan>(request.plan) && request.call->MayWait() ? Kind::kReads
                                                                                   : Kind::kAlone;
}

bool Run::CanJoin(const Request& request) const {
  return !requests_.empty() && kind_ != Kind::kAlone && request.call != nullptr && request.status.ok() &&
         !IsFull() && KindOf(request) == kind_ &&
         PlannedDataset(request) == PlannedDataset(*requests_.front());
}

void Run::Add(std::unique_ptr<Request> request) {
  if (requests_.empty()) {
    kind_ = KindOf(*request);
    bytes_ = 0;
  }
  bytes_ += BytesOf(*request);
  requests_.push_back(std::move(request));
}

Outcome Run::CarryOut(Core& core, Version version) {
  switch (kind_) {
    case Kind::kPuts:
    case Kind::kWaitingPuts: {
      std::vector<Request*> puts;
      for (const auto& request : requests_) puts.push_back(request.get());
      return CarryOutPuts(core, puts) ? Outcome::kDone : Outcome::kSuspended;
    }
    case Kind::kReads:
      return CarryOutReads(core, requests_, kAnswersTogether, version);
    case Kind::kAlone:
      break;
  }
  Request& request = *requests_.front();
  Encoder out(request.answer, version);
  return resp::CarryOut(core, request, /*here=*/false, out);
}

bool Run::HasUndone() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const auto& request) { return !request->done; });
}

void Run::TakeAnswers(Encoder& out) {
  size_t taken = 0;
  for (; taken < requests_.size() && requests_[taken]->done; ++taken) {
    Request& request = *requests_[taken];
    if (std::holds_alternative<WritePlan>(request.plan)) {
      AppendPut(request, out);
    } else {
      out.Append(request.answer);
    }
  }
  requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Run::Clear() { requests_.clear(); }

}  // namespace kvstore::server::resp
