#include "server/grpc/special_handlers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "idgen/object_id.h"
#include "json/json.h"
#include "json/json_text.h"
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
  if (principal == nullptr) return absl::OkStatus();
  const auto specs = core.router.ListDatasets();
  if (!specs.ok()) return specs.status();
  std::set<uint32_t> forbidden;
  for (const DatasetSpec& spec : *specs) {
    if (spec.shape == Shape::kObjects && !CheckRight(principal, spec.name, Right::kRead).ok()) {
      forbidden.insert(spec.type);
    }
  }
  for (v1::ListObjectsResponse::Result& result : *response.mutable_results()) {
    const auto id = ObjectId::FromValue(result.entry().to());
    if (!id.ok() || !forbidden.contains(id->type())) continue;
    result.clear_object();
    wire::ToWire(absl::PermissionDeniedError("'" + principal->name + "' lacks the right to read this object"),
                 *result.mutable_error());
  }
  return absl::OkStatus();
}

absl::Status HandleAny(Core& core, const Principal* principal, const v1::CreateReportRequest& request,
                       v1::CreateReportResponse& response, Unfinished&) {
  const absl::Status right = CheckRight(principal, request.dataset(), Right::kAdmin);
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

absl::Status HandleAny(Core& core, const Principal* principal, const v1::MigrateRequest& request,
                       v1::MigrateResponse& response, Unfinished&) {
  if (core.parts.migrations == nullptr) return absl::UnimplementedError("this server migrates no datasets");
  auto command = MigrateCommandOf(request);
  if (!command.ok()) return command.status();
  // The caller's right was checked for this dataset, whatever the command itself names.
  if (request.dataset() != "*") (*command)["dataset"] = request.dataset();
  if (request.dataset() == "*" && command->value("command", Json()) != "list") {
    return absl::InvalidArgumentError("dataset: only a list may be about all datasets ('*')");
  }
  if (principal != nullptr) (*command)["who"] = principal->name;
  const auto status = core.parts.migrations->Command(*command);
  if (!status.ok()) return status.status();
  Json about = *status;
  // A list has the migrations of all datasets, and the right was checked for one of them only.
  if (const auto list = about.find("migrations"); list != about.end() && list->is_array()) {
    const auto hidden = [principal](const Json& one) {
      return !CheckRight(principal, one.value("dataset", ""), Right::kAdmin).ok();
    };
    list->erase(std::remove_if(list->begin(), list->end(), hidden), list->end());
  }
  response.set_status(TextOf(about));
  return absl::OkStatus();
}

}  // namespace kvstore::server
