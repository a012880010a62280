#pragma once

#include <string_view>

#include "kvstore/v1/endpoint.pb.h"
#include "server/call/call.h"
#include "server/grpc/handlers.h"

/// HandleAny, for every method: the methods that need more than the store, such as the server itself or the
/// caller, and the template that hands all others to Handle (handlers.h, which also has Unfinished).
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
/// What the worker of a migration in another process asks. FAILED_PRECONDITION unless this server shares its
/// catalog, and the migration is recorded there.
absl::Status HandleAny(Core& core, const Principal* principal, const v1::EndpointRequest& request,
                       v1::EndpointResponse& response, Unfinished&);

template <typename Request, typename Response>
absl::Status HandleAny(Core& core, const Principal*, const Request& request, Response& response,
                       Unfinished& unfinished) {
  if constexpr (requires { Handle(core.router, request, response, &unfinished); }) {
    return Handle(core.router, request, response, &unfinished);
  } else {
    return Handle(core.router, request, response);
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

}  // namespace kvstore::server
