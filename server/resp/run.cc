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

size_t CellsOf(const Request& request) {
  const auto* const put = std::get_if<WritePlan>(&request.plan);
  return put == nullptr ? 0 : put->cells.size();
}

}  // namespace

Run::Kind Run::KindOf(const Request& request) {
  if (std::holds_alternative<WritePlan>(request.plan)) {
    const size_t most = std::get<WritePlan>(request.plan).counts_added ? kMostCountedHere : kMostCellsHere;
    if (CellsOf(request) > most) return Kind::kPutsOnWorker;
    if (request.call->RunsInTurn()) return Kind::kPuts;
    // Each put with a condition is a write of its own: those of several workers share a flush of the
    // engine's.
    const bool alone = std::get<WritePlan>(request.plan).options.condition.has_value();
    return request.call->WaitsForDevice() && !alone ? Kind::kFlushedPuts : Kind::kPutsOnWorker;
  }
  return std::holds_alternative<ReadPlan>(request.plan) && request.call->MayWait() ? Kind::kReads
                                                                                   : Kind::kAlone;
}

bool Run::CanJoin(const Request& request) const {
  if (requests_.empty() || kind_ == Kind::kAlone || request.call == nullptr || !request.status.ok())
    return false;
  if (requests_.size() >= kMost || bytes_ >= kMostBytes) return false;
  if (KindOf(request) != kind_ || PlannedDataset(request) != PlannedDataset(*requests_.front())) return false;
  return kind_ == Kind::kPutsOnWorker || kind_ == Kind::kReads || cells_ + CellsOf(request) <= kMostCellsHere;
}

void Run::Add(std::unique_ptr<Request> request) {
  if (requests_.empty()) {
    kind_ = KindOf(*request);
    bytes_ = cells_ = 0;
  }
  bytes_ += BytesOf(*request);
  cells_ += CellsOf(*request);
  requests_.push_back(std::move(request));
}

Outcome Run::CarryOut(Core& core, Version version) {
  switch (kind_) {
    case Kind::kPuts:
    case Kind::kFlushedPuts:
    case Kind::kPutsOnWorker: {
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
      out.Append(std::move(request.answer));
    }
  }
  requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Run::Clear() { requests_.clear(); }

}  // namespace kvstore::server::resp
