#include "server/resp/run.h"

#include <algorithm>
#include <utility>

#include "server/resp/writes.h"

namespace kvstore::server::resp {
namespace {

/// The answers that a worker makes before they are sent.
constexpr size_t kAnswersTogether = size_t{1} << 20;
/// Smaller answers count as sent when they are ready: a connection has few of them.
constexpr size_t kLargeAnswer = size_t{64} << 10;

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

void Run::TakeAnswers(Encoder& out, Requests& unsent) {
  size_t taken = 0;
  for (; taken < requests_.size() && requests_[taken]->done; ++taken) {
    std::unique_ptr<Request>& request = requests_[taken];
    const size_t before = out.size();
    if (std::holds_alternative<WritePlan>(request->plan)) {
      AppendPut(*request, out);
    } else {
      out.Append(std::exchange(request->answer, {}));
    }
    KeepIfLarge(std::move(request), out.size() - before, unsent);
  }
  requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Run::Clear() { requests_.clear(); }

void KeepIfLarge(std::unique_ptr<Request> request, size_t answer_bytes, Requests& unsent) {
  // What was decoded is not needed any more, and the plan may point into it.
  if (answer_bytes >= kLargeAnswer) unsent.push_back(std::move(request));
}

}  // namespace kvstore::server::resp
