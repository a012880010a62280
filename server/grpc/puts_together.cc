#include "server/grpc/puts_together.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend_api/outcome.h"
#include "backend_api/prompt_scope.h"
#include "kvstore_api/call_scope.h"
#include "wire/convert.h"

namespace kvstore::server {
namespace {

/// So many puts are begun, written and concluded before others begin: about as many as the engine writes at
/// once, so that each is written soon after it was found that it may be.
constexpr size_t kMaxSlice = 32;

/// Returns the limits of the puts as one: the time of those that have most, because none may end with
/// another. Any time if one has that.
CallLimits LimitsOf(std::span<PutOfMany* const> puts) {
  CallLimits limits{.deadline = puts.front()->call->limits().deadline, .waits = false};
  for (PutOfMany* const put : puts) {
    const auto& deadline = put->call->limits().deadline;
    if (!deadline) return {.waits = false};
    limits.deadline = std::max(*limits.deadline, *deadline);
  }
  return limits;
}

/// Returns how many of the puts are carried out next. A later attempt of one of them waits for its answer.
size_t NextSlice(std::span<const PutOfMany> puts) {
  std::set<std::string_view> ids;
  for (size_t size = 0; size < std::min(puts.size(), kMaxSlice); ++size) {
    const std::string& id = puts[size].call->request().attempt().request_id();
    if (!id.empty() && !ids.insert(id).second) return size;
  }
  return std::min(puts.size(), kMaxSlice);
}

/// Makes the puts, and sets what the store says of each.
void Put(Core& core, std::span<PutOfMany* const> puts, Patience patience) {
  const CallScope scope(LimitsOf(puts));
  std::optional<PromptScope> prompt;
  if (patience == Patience::kPrompt) prompt.emplace();
  std::vector<std::vector<CellWrite>> cells;
  std::vector<RowWrite> writes;
  cells.reserve(puts.size());
  writes.reserve(puts.size());
  for (const PutOfMany* const put : puts) {
    const v1::PutRowRequest& request = put->call->request();
    cells.push_back(wire::FromWire(request.cells()));
    writes.push_back({.row = request.row(), .cells = cells.back(), .options = {.sync = request.sync()}});
  }
  const auto results = core.router.PutRows(puts.front()->call->request().dataset(), writes);
  for (size_t i = 0; i < puts.size(); ++i) {
    PutOfMany& put = *puts[i];
    put.status = results.ok() ? (*results)[i].status() : results.status();
    if (!put.status.ok()) continue;
    if (const auto& timestamp = (*results)[i]->timestamp) put.call->response().set_timestamp(*timestamp);
  }
}

/// Carries out a part of the puts.
///
/// refused  The error of an earlier put that is to be made again, if there was one. None that comes after it
///          is made before it, because it could be of the same row.
void CarryOutSlice(Core& core, std::span<PutOfMany> puts, Patience patience, absl::Status& refused) {
  std::vector<PutOfMany*> begun;
  begun.reserve(puts.size());
  for (PutOfMany& put : puts) {
    const CallScope scope(put.call->limits());
    if (put.call->Begin(put.status)) begun.push_back(&put);
  }
  if (!refused.ok()) {
    for (PutOfMany* const put : begun) put->status = refused;
  } else if (!begun.empty()) {
    Put(core, begun, patience);
  }
  for (PutOfMany* const put : begun) {
    if (refused.ok() && (IsWouldWait(put->status) || IsMigrating(put->status))) refused = put->status;
    if (IsWouldWait(put->status)) {
      put->end = PutOfMany::End::kWouldWait;
    } else if (!put->call->Accept(put->status)) {
      put->end = PutOfMany::End::kSuspended;
    }
  }
  for (PutOfMany& put : puts) {
    if (put.end == PutOfMany::End::kDone) put.call->Conclude(put.status);
  }
}

}  // namespace

void CarryOutTogether(Core& core, std::span<PutOfMany> puts, Patience patience) {
  absl::Status refused;
  while (!puts.empty()) {
    const auto slice = puts.first(NextSlice(puts));
    CarryOutSlice(core, slice, patience, refused);
    puts = puts.subspan(slice.size());
  }
}

}  // namespace kvstore::server
