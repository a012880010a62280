#include "server/grpc/special_handlers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "json/json_text.h"
#include "server/call/change_feed.h"
#include "server/call/forbidden_objects.h"
#include "server/call/migration_command.h"
#include "server/grpc/verb_command.h"
#include "wire/convert.h"

namespace kvstore::server {

absl::Status HandleAny(Core& core, const Principal*, const v1::GetServerRequest&,
                       v1::GetServerResponse& response, Unfinished&) {
  response.set_version(KV_VERSION);
  response.set_instance(core.instance);
  response.set_clock_us(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(RequestMemory::Clock::now() - core.epoch)
          .count()));
  return absl::OkStatus();
}

absl::Status HandleAny(Core& core, const Principal*, const v1::GetMetricsRequest&,
                       v1::GetMetricsResponse& response, Unfinished&) {
  response.set_text(core.metrics.Text());
  return absl::OkStatus();
}

absl::Status HandleAny(Core& core, const Principal* principal, const v1::ListDatasetsRequest& request,
                       v1::ListDatasetsResponse& response, Unfinished&) {
  if (auto status = Handle(core.router, request, response); !status.ok()) return status;
  auto& datasets = *response.mutable_datasets();
  for (int i = datasets.size() - 1; i >= 0; --i) {
    if (!CheckRight(principal, datasets[i].name(), Right::kRead).ok()) datasets.DeleteSubrange(i, 1);
  }
  return absl::OkStatus();
}

absl::Status HandleAny(Core& core, const Principal* principal, const v1::ListObjectsRequest& request,
                       v1::ListObjectsResponse& response, Unfinished& unfinished) {
  if (auto status = Handle(core.router, request, response, &unfinished); !status.ok()) return status;
  const auto forbidden = ForbiddenObjects::Of(core.router, principal);
  if (!forbidden.ok()) return forbidden.status();
  for (v1::ListObjectsResponse::Result& result : *response.mutable_results()) {
    if (!forbidden->Contains(result.entry().to())) continue;
    result.clear_object();
    wire::ToWire(forbidden->Error(), *result.mutable_error());
  }
  return absl::OkStatus();
}

absl::Status HandleAny(Core& core, const Principal* principal, const v1::CreateReportRequest& request,
                       v1::CreateReportResponse& response, Unfinished&) {
  absl::Status right = CheckRight(principal, request.dataset(), Right::kAdmin);
  if (!right.ok() && !core.router.GetDataset(request.dataset()).ok()) return right;
  return Handle(core.router, request, response);
}

Producer<v1::ListReportsResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>& principal,
                                             const v1::ListReportsRequest& request, const ReserveBytes&) {
  if (principal != nullptr && !principal->MayKnowOf(request.dataset())) {
    return [status = CheckRight(principal.get(), request.dataset(), Right::kRead)](
               v1::ListReportsResponse&, absl::Status*) -> absl::StatusOr<bool> { return status; };
  }
  return Produce(core.router, request, [principal, &request](const std::string& report) {
    return CheckRight(principal.get(), request.dataset(), Right::kRead, report).ok();
  });
}

Producer<v1::QueryReportResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>&,
                                             const v1::QueryReportRequest& request,
                                             const ReserveBytes& reserve) {
  return Produce(core.router, request, {.max_memory_bytes = core.options.limits.query_bytes}, reserve);
}

Producer<v1::WatchChangesResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>&,
                                              const v1::WatchChangesRequest& request, const ReserveBytes&) {
  return [follower = ChangeFollower(core.changes, request.dataset(), request.token())](
             v1::WatchChangesResponse& response, absl::Status* migrating) mutable -> absl::StatusOr<bool> {
    const auto page = follower.Next();
    if (!page.ok()) return page.status();
    if (*page == nullptr) {
      *migrating = NothingYetError(follower.token());
      return false;
    }
    for (const Change& change : (*page)->changes) wire::ToWire(Change(change), *response.add_changes());
    response.set_token((*page)->token);
    response.set_complete_until_ms((*page)->complete_until_ms);
    return true;
  };
}

absl::Status HandleAny(Core& core, const Principal* principal, const v1::MigrateRequest& request,
                       v1::MigrateResponse& response, Unfinished&) {
  if (core.parts.migrations == nullptr) return absl::UnimplementedError("this server migrates no datasets");
  auto command = MigrateCommandOf(request);
  if (!command.ok()) return command.status();
  const auto status = CommandMigration(core, principal, request.dataset(), *std::move(command));
  if (!status.ok()) return status.status();
  response.set_status(TextOf(*status));
  return absl::OkStatus();
}

}  // namespace kvstore::server
