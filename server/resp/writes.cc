#include "server/resp/writes.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/row_rules.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/errors.h"
#include "server/resp/commands/rows.h"

namespace kvstore::server::resp {
namespace {

/// Puts with more cells are not carried out together on a loop.
constexpr size_t kMostCellsTogether = 4'000;
/// Nor are puts with more bytes, of which a part would wait for the others.
constexpr size_t kMostBytesTogether = size_t{4} << 20;
/// So many columns of one row are looked for at once.
constexpr size_t kMostCountedOfRow = 1'000;

const WritePlan& PlanOf(const Request& request) { return std::get<WritePlan>(request.plan); }
WritePlan& PlanOf(Request& request) { return std::get<WritePlan>(request.plan); }

/// The columns of rows that have a value, as far as puts ask for them.
using Columns = std::set<std::string, std::less<>>;
using ColumnsOfRows = std::map<std::string_view, Columns>;

/// Reads which of these columns of a row have a value.
absl::StatusOr<Columns> ReadColumns(Router& router, std::string_view dataset, std::string_view row,
                                    const Columns& asked) {
  ReadOptions options;
  options.columns.emplace(asked.begin(), asked.end());
  options.limit = static_cast<uint32_t>(std::min<size_t>(asked.size(), kMaxListEntries));
  Columns there;
  do {
    auto page = router.GetRow(dataset, row, options);
    if (!page.ok()) return page.status();
    for (Item& item : page->items) there.insert(std::move(item.column));
    options.marker = std::move(page->marker);
  } while (!options.marker.empty());
  return there;
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

/// Returns the columns that puts which count what they add ask for, by row.
ColumnsOfRows AskedColumns(std::span<Request* const> requests) {
  ColumnsOfRows asked;
  for (const Request* const request : requests) {
    const WritePlan& plan = PlanOf(*request);
    if (!plan.counts_added) continue;
    Columns& columns = asked[plan.row];
    for (const CellWrite& cell : plan.cells) columns.emplace(cell.column);
  }
  return asked;
}

/// Sets how many columns a put has added, and adds its columns to those that have a value.
void CountAdded(WritePlan& plan, Columns& there) {
  plan.added = 0;
  for (const CellWrite& cell : plan.cells) {
    if (there.emplace(cell.column).second) ++plan.added;
  }
}

/// Carries out puts. Returns false if some are to be suspended.
bool CarryOutRun(Core& core, std::span<Request* const> requests) {
  std::vector<absl::Status> statuses(requests.size());
  const CallScope scope(LimitsTogether(requests));
  ColumnsOfRows asked = AskedColumns(requests);
  ColumnsOfRows there;
  absl::Status migrating;
  for (size_t i = 0; i < requests.size(); ++i) {
    WritePlan& plan = PlanOf(*requests[i]);
    {
      const CallScope own(requests[i]->call->Limits());
      statuses[i] = requests[i]->call->CheckStart();
    }
    // Nothing overtakes a put that waits for the end of a migration: it could be of the same row.
    if (!migrating.ok()) statuses[i] = migrating;
    if (statuses[i].ok() && plan.counts_added && !there.contains(plan.row)) {
      auto columns = ReadColumns(core.router, plan.dataset, plan.row, asked[plan.row]);
      statuses[i] = columns.status();
      if (columns.ok()) there[plan.row] = *std::move(columns);
    }
    if (IsMigrating(statuses[i])) migrating = statuses[i];
  }
  Put(core.router, requests, statuses);
  // A column that an earlier put has added is not new any more.
  for (size_t i = 0; i < requests.size(); ++i) {
    WritePlan& plan = PlanOf(*requests[i]);
    if (const auto columns = there.find(plan.row); columns != there.end() && statuses[i].ok())
      CountAdded(plan, columns->second);
  }
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
  bool all = true;
  size_t begin = 0;
  while (begin < left.size()) {
    std::unordered_map<std::string_view, size_t> counted;  // columns, by row
    size_t end = begin;
    for (; end < left.size() && end - begin < kMaxBatchRows; ++end) {
      const WritePlan& plan = PlanOf(*left[end]);
      if (!plan.counts_added) continue;
      size_t& columns = counted[plan.row];
      if (columns > 0 && columns + plan.cells.size() > kMostCountedOfRow) break;
      columns += plan.cells.size();
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
  } else if (IsUnfulfilled(request.status)) {
    command.answer(plan, nullptr, out);
  } else {
    out.Error(ErrorText(request.status));
  }
  request.call->Finish(request.status, out.size() - before);
}

void PutGroup::Add(std::shared_ptr<PutMember> member) {
  members_.push_back(std::move(member));
  // Posted work runs after everything that has arrived by now, so that puts among it join this group.
  if (members_.size() == 1 && !runs_) boost::asio::post(loop_, [this] { Begin(); });
}

void PutGroup::Begin() {
  Members members = Take();
  if (where_ == Where::kHere || !HasThread()) {
    const auto begin = std::chrono::steady_clock::now();
    CarryOut(members);
    // The puts that are left are carried out after other things that the loop has to do.
    if (!members_.empty()) boost::asio::post(loop_, [this] { Begin(); });
    return End(members, std::chrono::steady_clock::now() - begin);
  }
  runs_ = true;
  boost::asio::post(*thread_, [this, members = std::move(members)]() mutable {
    CarryOut(members);
    // A connection must not be destroyed by that thread, so the loop gets all references to it.
    boost::asio::post(loop_, [this, members = std::move(members)] {
      runs_ = false;
      // Puts that have arrived by now do not wait for the answers to these.
      if (!members_.empty()) Begin();
      End(members, {});
    });
  });
}

bool PutGroup::HasThread() {
  try {
    if (!thread_) thread_.emplace(1);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

PutGroup::Members PutGroup::Take() {
  if (where_ == Where::kOnAnother) LetCallersTakeTurns();
  size_t cells = 0;
  size_t bytes = 0;
  auto end = members_.begin();
  for (; end != members_.end() && cells < kMostCellsTogether && bytes < kMostBytesTogether; ++end) {
    for (const auto& put : (*end)->puts()) {
      cells += PlanOf(*put).cells.size();
      for (const CellWrite& cell : PlanOf(*put).cells) bytes += cell.value.size();
    }
  }
  Members taken(std::make_move_iterator(members_.begin()), std::make_move_iterator(end));
  members_.erase(members_.begin(), end);
  return taken;
}

void PutGroup::LetCallersTakeTurns() {
  std::unordered_map<const void*, size_t> met;  // members of a caller
  std::vector<std::pair<size_t, std::shared_ptr<PutMember>>> turns;
  turns.reserve(members_.size());
  for (auto& member : members_) turns.emplace_back(met[member->caller()]++, std::move(member));
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::transform(turns.begin(), turns.end(), members_.begin(),
                 [](auto& turn) { return std::move(turn.second); });
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

void PutGroup::End(const Members& members, std::chrono::steady_clock::duration took) {
  int64_t all = 0;
  for (const auto& member : members) all += static_cast<int64_t>(member->puts().size());
  for (const auto& member : members) {
    member->PutsDone(took * static_cast<int64_t>(member->puts().size()) / all);
  }
}

}  // namespace kvstore::server::resp
