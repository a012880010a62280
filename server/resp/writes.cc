#include "server/resp/writes.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "backend_api/outcome.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/rows.h"

namespace kvstore::server::resp {
namespace {

/// Puts with more cells are not carried out together on a loop.
constexpr size_t kMostCellsTogether = 4'000;

const WritePlan& PlanOf(const Request& request) { return std::get<WritePlan>(request.plan); }
WritePlan& PlanOf(Request& request) { return std::get<WritePlan>(request.plan); }

/// Reads how many of a put's columns have no value yet.
absl::Status CountAdded(Router& router, WritePlan& plan) {
  ReadPlan read{.dataset = plan.dataset, .row = plan.row, .options = {}};
  read.options.columns.emplace();
  for (const CellWrite& cell : plan.cells) read.options.columns->emplace_back(cell.column);
  read.options.limit = static_cast<uint32_t>(plan.cells.size());
  const auto there = CountIn(router, std::move(read), Counted::kColumns, /*here=*/false);
  if (!there.ok()) return there.status();
  plan.added = plan.cells.size() - *there;
  return absl::OkStatus();
}

/// Returns the limits of puts that are made together: no caller may cancel those of another.
CallLimits LimitsTogether(std::span<Request* const> requests) {
  CallLimits limits{.waits = false};
  for (Request* const request : requests) {
    const auto& deadline = request->call->Limits().deadline;
    limits.deadline = limits.deadline && deadline ? std::min(*limits.deadline, *deadline) : deadline;
  }
  return limits;
}

/// Makes the puts among these that have no error yet.
///
/// statuses  one for each request.
void Put(Router& router, std::span<Request* const> requests, std::vector<absl::Status>& statuses) {
  std::vector<size_t> places;
  std::vector<RowWrite> writes;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!statuses[i].ok()) continue;
    const WritePlan& plan = PlanOf(*requests[i]);
    places.push_back(i);
    writes.push_back({.row = plan.row, .cells = plan.cells, .options = plan.options});
  }
  if (writes.empty()) return;
  const std::string_view dataset = PlanOf(*requests[places.front()]).dataset;
  std::vector<absl::StatusOr<PutResult>> results;
  if (writes.size() == 1) {
    results.push_back(router.PutRow(dataset, writes[0].row, writes[0].cells, writes[0].options));
  } else if (auto all = router.PutRows(dataset, writes); all.ok()) {
    results = *std::move(all);
  } else {
    results.assign(writes.size(), all.status());
  }
  for (size_t i = 0; i < places.size(); ++i) {
    statuses[places[i]] = results[i].status();
    if (results[i].ok()) requests[places[i]]->put = *results[i];
  }
}

/// Returns whether an error says that a put's condition did not hold.
bool IsUnfulfilled(const WritePlan& plan, const absl::Status& error) {
  if (!plan.options.condition || HasWord(error)) return false;
  return plan.options.condition->equals ? absl::IsFailedPrecondition(error) : absl::IsAlreadyExists(error);
}

/// Carries out puts none of which has to be counted behind another one of the same row. Returns false if some
/// are to be suspended.
bool CarryOutRun(Core& core, std::span<Request* const> requests) {
  std::vector<absl::Status> statuses(requests.size());
  const CallScope scope(LimitsTogether(requests));
  absl::Status migrating;
  for (size_t i = 0; i < requests.size(); ++i) {
    WritePlan& plan = PlanOf(*requests[i]);
    {
      const CallScope own(requests[i]->call->Limits());
      statuses[i] = requests[i]->call->CheckStart();
    }
    // Nothing overtakes a put that waits for the end of a migration: it could be of the same row.
    if (!migrating.ok()) statuses[i] = migrating;
    if (statuses[i].ok() && plan.counts_added) statuses[i] = CountAdded(core.router, plan);
    if (IsMigrating(statuses[i])) migrating = statuses[i];
  }
  Put(core.router, requests, statuses);
  bool all = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = *requests[i];
    if (request.call->MustSuspend(statuses[i])) {
      all = false;
      continue;
    }
    request.status = CheckShape(core.router, PlanOf(request).dataset, request.command->shape, statuses[i]);
    request.done = true;
  }
  return all;
}

}  // namespace

bool CarryOutPuts(Core& core, std::span<Request* const> requests) {
  std::vector<Request*> left;
  for (Request* const request : requests) {
    if (!request->done) left.push_back(request);
  }
  const bool counts = std::any_of(left.begin(), left.end(),
                                  [](const Request* request) { return PlanOf(*request).counts_added; });
  bool all = true;
  size_t begin = 0;
  while (begin < left.size()) {
    std::unordered_set<std::string_view> rows;
    size_t end = begin;
    for (; end < left.size() && end - begin < kMaxBatchRows; ++end) {
      const WritePlan& plan = PlanOf(*left[end]);
      if (!counts) continue;
      // What an earlier put adds is not new any more.
      if (plan.counts_added && rows.contains(plan.row)) break;
      rows.insert(plan.row);
    }
    const std::span<Request* const> run(left.data() + begin, end - begin);
    if (!all) {
      for (Request* const request : run) request->call->SuspendBehind();
    } else {
      all = CarryOutRun(core, run);
    }
    begin = end;
  }
  return all;
}

void AppendPut(Request& request, Encoder& out) {
  const size_t before = out.size();
  const WritePlan& plan = PlanOf(request);
  const auto& command = std::get<WriteCommand>(request.command->handler);
  if (request.status.ok()) {
    command.answer(plan, &*request.put, out);
  } else if (IsUnfulfilled(plan, request.status)) {
    command.answer(plan, nullptr, out);
  } else {
    out.Error(ErrorText(request.status));
  }
  request.call->Finish(request.status, out.size() - before);
}

void PutGroup::Add(std::shared_ptr<PutMember> member) {
  members_.push_back(std::move(member));
  // What is posted runs behind everything that has arrived by now.
  if (members_.size() == 1 && !runs_) boost::asio::post(loop_, [this] { Begin(); });
}

void PutGroup::Begin() {
  Members members = Take();
  if (where_ == Where::kHere) {
    CarryOut(members);
    // What is left is carried out behind other things that the loop has to do.
    if (!members_.empty()) boost::asio::post(loop_, [this] { Begin(); });
    return End(members);
  }
  runs_ = true;
  if (!thread_) thread_.emplace(1);
  boost::asio::post(*thread_, [this, members = std::move(members)]() mutable {
    CarryOut(members);
    // A connection must not be destroyed by that thread, so the loop gets all references to it.
    boost::asio::post(loop_, [this, members = std::move(members)] {
      runs_ = false;
      // What has arrived by now does not wait for the answers to these.
      if (!members_.empty()) Begin();
      End(members);
    });
  });
}

PutGroup::Members PutGroup::Take() {
  size_t cells = 0;
  auto end = members_.begin();
  for (; end != members_.end() && cells < kMostCellsTogether; ++end) {
    for (const auto& put : (*end)->puts()) cells += PlanOf(*put).cells.size();
  }
  Members taken(std::make_move_iterator(members_.begin()), std::make_move_iterator(end));
  members_.erase(members_.begin(), end);
  return taken;
}

void PutGroup::CarryOut(const Members& members) {
  std::vector<std::pair<std::string_view, std::vector<Request*>>> datasets;
  for (const auto& member : members) {
    const Requests& puts = member->puts();
    const std::string_view dataset = PlannedDataset(*puts.front());
    auto found = std::find_if(datasets.begin(), datasets.end(),
                              [&](const auto& other) { return other.first == dataset; });
    if (found == datasets.end()) {
      datasets.emplace_back(dataset, std::vector<Request*>());
      found = std::prev(datasets.end());
    }
    for (const auto& put : puts) found->second.push_back(put.get());
  }
  for (const auto& [dataset, puts] : datasets) CarryOutPuts(core_, puts);
}

void PutGroup::End(const Members& members) {
  for (const auto& member : members) member->PutsDone();
}

}  // namespace kvstore::server::resp
