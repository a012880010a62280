#include "server/grpc/puts_together.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backend_api/prompt_scope.h"
#include "kvstore_api/call_scope.h"
#include "wire/convert.h"

namespace kvstore::server {
namespace {

/// Returns the limits of the puts as one: the time of those that have most, because none may end with
/// another.
CallLimits LimitsOf(std::span<PutOfMany* const> puts) {
  CallLimits limits{.waits = false};
  for (PutOfMany* const put : puts) {
    const auto& deadline = put->call->limits().deadline;
    if (!limits.deadline || (deadline && *deadline > *limits.deadline)) limits.deadline = deadline;
  }
  return limits;
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

}  // namespace

void CarryOutTogether(Core& core, std::span<PutOfMany> puts, Patience patience) {
  std::vector<PutOfMany*> begun;
  begun.reserve(puts.size());
  for (PutOfMany& put : puts) {
    const CallScope scope(put.call->limits());
    if (put.call->Begin(put.status)) begun.push_back(&put);
  }
  if (!begun.empty()) Put(core, begun, patience);
  for (PutOfMany* const put : begun) {
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

}  // namespace kvstore::server
