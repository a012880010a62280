#pragma once

#include <memory>
#include <string_view>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/shards.pb.h"
#include "server/call/call.h"
#include "server/grpc/handlers.h"

/// HandleAny and ProduceAny, for every method: the methods that need more than the store, such as the server
/// itself or the caller, and the templates that hand all others to Handle and Produce (handlers.h, which also
/// has Unfinished).
namespace kvstore::server {

absl::Status HandleAny(Core& core, const Principal* principal, const v1::GetServerRequest& request,
                       v1::GetServerResponse& response, Unfinished&);
absl::Status HandleAny(Core& core, const Principal* principal, const v1::GetMetricsRequest& request,
                       v1::GetMetricsResponse& response, Unfinished&);
/// Lists only datasets that the caller may read.
absl::Status HandleAny(Core& core, const Principal* principal, const v1::ListDatasetsRequest& request,
                       v1::ListDatasetsResponse& response, Unfinished&);
/// Objects of datasets that the caller may not read are PERMISSION_DENIED in the answer.
absl::Status HandleAny(Core& core, const Principal* principal, const v1::ListObjectsRequest& request,
                       v1::ListObjectsResponse& response, Unfinished& unfinished);

absl::Status HandleAny(Core& core, const Principal* principal, const v1::MigrateRequest& request,
                       v1::MigrateResponse& response, Unfinished&);
/// Answers a request of the worker of a migration that runs in another process. FAILED_PRECONDITION unless
/// this server shares its catalog, and the migration is recorded there.
absl::Status HandleAny(Core& core, const Principal* principal, const v1::EndpointRequest& request,
                       v1::EndpointResponse& response, Unfinished&);

absl::Status HandleAny(Core& core, const Principal* principal, const v1::GetShardMapRequest& request,
                       v1::GetShardMapResponse& response, Unfinished&);
absl::Status HandleAny(Core& core, const Principal* principal, const v1::ListShardMapsRequest& request,
                       v1::ListShardMapsResponse& response, Unfinished&);

/// PERMISSION_DENIED if the dataset does not exist and the caller may not create it: a right on a report does
/// not include that.
absl::Status HandleAny(Core& core, const Principal* principal, const v1::CreateReportRequest& request,
                       v1::CreateReportResponse& response, Unfinished&);

template <typename Request, typename Response>
absl::Status HandleAny(Core& core, const Principal*, const Request& request, Response& response,
                       Unfinished& unfinished) {
  if constexpr (requires { Handle(core.router, request, response, &unfinished); }) {
    return Handle(core.router, request, response, &unfinished);
  } else {
    return Handle(core.router, request, response);
  }
}

/// Lists only reports that the caller may read. PERMISSION_DENIED if the caller has no right on the dataset,
/// nor on any of its reports, whether there is such a dataset or not.
Producer<v1::ListReportsResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>& principal,
                                             const v1::ListReportsRequest& request, const ReserveBytes&);
/// Applies the server's limits of queries (ServerLimits::query_bytes).
Producer<v1::QueryReportResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>& principal,
                                             const v1::QueryReportRequest& request,
                                             const ReserveBytes& reserve);

/// Ends only with an error.
Producer<v1::WatchChangesResponse> ProduceAny(Core& core, const std::shared_ptr<const Principal>& principal,
                                              const v1::WatchChangesRequest& request, const ReserveBytes&);

template <typename Request>
auto ProduceAny(Core& core, const std::shared_ptr<const Principal>&, const Request& request,
                const ReserveBytes& reserve) {
  if constexpr (requires { Produce(core.router, request, reserve); }) {
    return Produce(core.router, request, reserve);
  } else {
    return Produce(core.router, request);
  }
}

/// Returns the dataset that a request is about; empty if there is none.
template <typename Request>
std::string_view DatasetOf(const Request& request) {
  if constexpr (requires { request.dataset().name(); }) {
    return request.dataset().name();
  } else if constexpr (requires { request.dataset(); }) {
    return request.dataset();
  } else {
    return {};
  }
}

/// Returns the report of that dataset that a request is about; empty if there is none.
template <typename Request>
std::string_view ReportOf(const Request& request) {
  if constexpr (requires { request.report().name(); }) {
    return request.report().name();
  } else if constexpr (requires { request.report(); }) {
    return request.report();
  } else {
    return {};
  }
}

}  // namespace kvstore::server
