#include "server/resp/request.h"

#include <algorithm>
#include <span>
#include <utility>

#include "backend_api/scan_budget.h"
#include "server/resp/commands/answer_memory.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/key.h"
#include "server/resp/commands/rows.h"
#include "server/resp/commands/scan.h"

namespace kvstore::server::resp {
namespace {

/// So many reads are made together, each of a page of so many bytes. A larger row is read alone.
constexpr size_t kReadsTogether = 32;
constexpr size_t kTogetherBytes = size_t{256} << 10;
/// For an answer of a row that takes more, memory is allocated at once.
constexpr size_t kLargeAnswer = size_t{1} << 20;

/// Returns the dataset of a command, as far as its arguments tell it.
std::string DatasetOfCommand(Core& core, const Cursors& cursors, const CommandCall& session,
                             const Request& request) {
  switch (request.command->dataset) {
    case DatasetIn::kNone:
      break;
    case DatasetIn::kKey:
      return std::string(DatasetOf(request.arguments[1]));
    case DatasetIn::kArgument:
      return std::string(request.arguments[1]);
    case DatasetIn::kScan:
      return ScannedDataset(core.router, cursors, session.principal(), session.caller(), request.arguments);
  }
  return "";
}

RequestSize SizeOfRequest(const Request& request) {
  size_t bytes = 0;
  for (const std::string_view argument : request.arguments) bytes += argument.size();
  return {.bytes = bytes,
          .memory = bytes + sizeof(Request) + request.arguments.size() * sizeof(std::string_view)};
}

/// Plans the command by its arguments. An error says what is wrong with them.
absl::Status MakePlan(Core& core, Cursors& cursors, Request& request) {
  const Handler& handler = request.command->handler;
  if (const auto* read = std::get_if<ReadCommand>(&handler)) {
    return read->plan(request.arguments, request.plan.emplace<ReadPlan>());
  }
  if (const auto* write = std::get_if<WriteCommand>(&handler)) {
    return write->plan(request.arguments, request.plan.emplace<WritePlan>());
  }
  request.plan.emplace<StoreCall>(StoreCall{.router = core.router, .cursors = cursors});
  return absl::OkStatus();
}

/// Ends a command that is carried out: appends its answer by `append`, or its error.
template <typename Append>
void Answer(Request& request, absl::Status status, Encoder& out, size_t before, const Append& append) {
  if (status.ok()) append();
  if (status.ok() && out.is_too_large()) status = TooLargeAnswerError();
  if (!status.ok()) {
    out.Truncate(before);
    out.Error(ErrorText(status));
  }
  request.status = status;
  request.done = true;
  request.call->Finish(status, out.size() - before);
}

absl::Status InItsShape(Core& core, const Request& request, const absl::Status& status) {
  return status.ok() ? status
                     : CheckShape(core.router, request.call->dataset(), request.command->shape, status);
}

Outcome CarryOutRead(Core& core, Request& request, const ReadCommand& command, bool here, Encoder& out) {
  const size_t before = out.size();
  out.Limit(kMaxSentBytes);
  AnswerMemory memory(*request.call);
  Row row;
  absl::Status status;
  {
    const CallScope scope(request.call->Limits());
    status = request.call->CheckStart();
    if (status.ok()) status = ReadAll(core.router, std::get<ReadPlan>(request.plan), here, memory, row);
    if (IsTooLongHere(status)) return Outcome::kTooLong;
    if (request.call->MustSuspend(status)) return Outcome::kSuspended;
    status = InItsShape(core, request, status);
  }
  // A text that grows by itself would take twice as much.
  if (status.ok() && memory.bytes() >= kLargeAnswer) out.Reserve(AnswerBytes(row));
  Answer(request, status, out, before, [&] { command.answer(request.arguments, row, out); });
  return Outcome::kDone;
}

Outcome CarryOutStore(Core& core, Request& request, const StoreCommand& command, bool here, Encoder& out) {
  const size_t before = out.size();
  out.Limit(kMaxSentBytes);
  AnswerMemory memory(*request.call);
  auto& call = std::get<StoreCall>(request.plan);
  call.here = here;
  call.memory = &memory;
  call.caller = request.call->caller();
  absl::Status status;
  {
    const CallScope scope(request.call->Limits());
    status = request.call->CheckStart();
    call.principal = request.call->principal();
    if (status.ok()) status = command.carry_out(call, request.arguments, out);
    if (!status.ok()) out.Truncate(before);
    if (IsTooLongHere(status)) return Outcome::kTooLong;
    if (request.call->MustSuspend(status)) return Outcome::kSuspended;
    status = InItsShape(core, request, status);
  }
  Answer(request, status, out, before, [] {});
  return Outcome::kDone;
}

/// Carries out some reads that are not done, together. Returns false if one of them is to be suspended.
bool CarryOutTogether(Core& core, std::span<Request* const> requests, Version version) {
  CallLimits limits{.waits = false};
  std::vector<RowRead> reads;
  for (Request* const request : requests) {
    const CallLimits& own = request->call->Limits();
    limits.deadline =
        limits.deadline && own.deadline ? std::min(*limits.deadline, *own.deadline) : own.deadline;
    limits.cancelled = own.cancelled;
    const auto& plan = std::get<ReadPlan>(request->plan);
    reads.push_back({.row = plan.row, .options = plan.options});
    reads.back().options.max_bytes = std::min(plan.options.max_bytes, kTogetherBytes);
  }
  const CallScope scope(limits);
  absl::Status start;
  for (Request* const request : requests) {
    if (start.ok()) start = request->call->CheckStart();
  }
  auto rows = start.ok() ? core.router.GetRows(PlannedDataset(*requests.front()), reads)
                         : absl::StatusOr<std::vector<absl::StatusOr<Row>>>(start);
  bool suspended = false;
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = *requests[i];
    Encoder out(request.answer, version);
    out.Limit(kMaxSentBytes);
    const bool whole = rows.ok() && (*rows)[i].ok() && (*rows)[i]->marker.empty();
    absl::Status status = rows.ok() ? (*rows)[i].status() : rows.status();
    if (!whole && (status.ok() || IsPaused(status))) {
      // It has more than fits together with others.
      suspended = CarryOut(core, request, /*here=*/false, out) == Outcome::kSuspended || suspended;
      continue;
    }
    if (request.call->MustSuspend(status)) {
      suspended = true;
      continue;
    }
    status = InItsShape(core, request, status);
    const auto& command = std::get<ReadCommand>(request.command->handler);
    Answer(request, status, out, 0, [&] { command.answer(request.arguments, *(*rows)[i], out); });
  }
  return !suspended;
}

}  // namespace

void Begin(Core& core, Cursors& cursors, CommandCall& session, const CallInfo& info, Request& request) {
  if (request.command->dataset == DatasetIn::kKey) {
    if (auto status = CheckNamesDataset(request.arguments[1]); !status.ok()) {
      // No part of the key may become the dataset of the call's record.
      request.call = std::make_unique<CommandCall>(core, request.command->operation, info);
      request.status = request.call->Authenticate();
      if (request.status.ok()) request.status = std::move(status);
      return;
    }
  }
  const std::string dataset = DatasetOfCommand(core, cursors, session, request);
  // A scan that has nothing to read is no more than a list of datasets, which anybody may ask for.
  const bool lists = request.command->dataset == DatasetIn::kScan && dataset.empty();
  const Operation operation = lists ? Operation::kListDatasets : request.command->operation;
  request.call = std::make_unique<CommandCall>(core, operation, info);
  absl::Status planned = request.call->Authenticate();
  if (planned.ok()) planned = CheckRight(request.call->principal(), dataset, Traits(operation).right);
  // A caller without the right cannot make the server plan a large put; Admit tells it why.
  if (planned.ok()) planned = MakePlan(core, cursors, request);
  const auto* const write = std::get_if<WritePlan>(&request.plan);
  request.status =
      request.call->Admit(dataset, SizeOfRequest(request), write != nullptr && write->options.sync);
  // Whether the arguments are right is told to those who have the right alone: it may depend on the dataset.
  if (request.status.ok() && !planned.ok()) request.status = InItsShape(core, request, planned);
}

bool HasRoomFor(const CommandCall& session, const Request& request) {
  return session.CallerMayCall(SizeOfRequest(request).memory);
}

bool IsTurnedAway(const Request& request) {
  return absl::IsResourceExhausted(request.status) &&
         Call::OutcomeOf(request.status) == CallOutcome::kRefused;
}

void TakeBack(Request& request) {
  request.call.reset();
  request.plan.emplace<std::monostate>();
  request.status = absl::OkStatus();
  request.begun = false;
}

std::string_view PlannedDataset(const Request& request) {
  if (const auto* read = std::get_if<ReadPlan>(&request.plan)) return read->dataset;
  if (const auto* write = std::get_if<WritePlan>(&request.plan)) return write->dataset;
  return {};
}

Outcome CarryOut(Core& core, Request& request, bool here, Encoder& out) {
  if (const auto* read = std::get_if<ReadCommand>(&request.command->handler)) {
    return CarryOutRead(core, request, *read, here, out);
  }
  return CarryOutStore(core, request, std::get<StoreCommand>(request.command->handler), here, out);
}

Outcome CarryOutReads(Core& core, const Requests& requests, size_t most_bytes, Version version) {
  size_t bytes = 0;
  bool suspended = false;
  std::vector<Request*> some;
  size_t next = 0;
  while (next < requests.size() && bytes < most_bytes) {
    some.clear();
    for (; next < requests.size() && some.size() < kReadsTogether; ++next) {
      if (!requests[next]->done) some.push_back(requests[next].get());
    }
    if (some.empty()) break;
    suspended = !CarryOutTogether(core, some, version) || suspended;
    for (const Request* request : some) bytes += request->answer.size();
  }
  if (!suspended) return next < requests.size() ? Outcome::kPartly : Outcome::kDone;
  for (; next < requests.size(); ++next) {
    if (!requests[next]->done) requests[next]->call->SuspendBehind();
  }
  return Outcome::kSuspended;
}

void Refuse(Request& request, Encoder& out) {
  const size_t before = out.size();
  out.Error(ErrorText(request.status));
  if (request.call != nullptr) request.call->Finish(request.status, out.size() - before);
}

}  // namespace kvstore::server::resp
