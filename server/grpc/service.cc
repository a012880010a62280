#include "server/grpc/service.h"

#include <fmt/format.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "kvstore/v1/shards.pb.h"
#include "server/grpc/long_work_call.h"
#include "server/grpc/multiplexed_calls.h"
#include "server/grpc/streaming_rpcs.h"
#include "server/grpc/unary_call.h"
#include "server/grpc/write_points_call.h"

namespace kvstore::server {
namespace {

/// Returns a handler that starts calls with one request and one answer. The last argument is only for its
/// type.
template <typename Request, typename Response>
grpc::internal::MethodHandler* MakeHandler(Core& core, Operation operation,
                                           const UnaryReactor<Request, Response>* /*type*/) {
  return new UnaryHandler<Request, Response>([&core, operation](grpc::CallbackServerContext& context,
                                                                Opening<Request>& opening,
                                                                Response& response) {
    auto* call = new UnaryReactor<Request, Response>(core, operation, context, opening, response);
    call->Start();
    return call;
  });
}

/// The same for calls that are streams.
template <typename Reactor, typename Request, typename Response>
grpc::internal::MethodHandler* MakeStreamHandler(Core& core, Operation operation,
                                                 const grpc::ServerBidiReactor<Request, Response>* /*base*/) {
  return new grpc::internal::CallbackBidiHandler<Request, Response>(
      [&core, operation](grpc::CallbackServerContext* context) {
        auto* call = new Reactor(core, operation, *context);
        call->Start();
        return call;
      });
}
template <typename Reactor>
grpc::internal::MethodHandler* MakeHandler(Core& core, Operation operation, const Reactor* type) {
  return MakeStreamHandler<Reactor>(core, operation, type);
}

constexpr const char* ServiceOf(Operation operation) {
  if (IsOnShards(operation)) return "kvstore.v1.Shards";
  return IsOnReports(operation) ? "kvstore.v1.Reports" : "kvstore.v1.KVStore";
}

}  // namespace

template <typename Reactor>
void Service::Add(Operation operation, const char* service, const char* method) {
  const std::string& name = names_.emplace_back(
      fmt::format("/{}/{}", service, method != nullptr ? method : Traits(operation).name));
  AddMethod(
      new grpc::internal::RpcServiceMethod(name.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodCallback(static_cast<int>(names_.size()) - 1,
                     MakeHandler(core_, operation, static_cast<const Reactor*>(nullptr)));
}

Service::Service(Core& core) : core_(core) {
#define KV_UNARY(name, right, quick) \
  Add<UnaryReactor<v1::name##Request, v1::name##Response>>(Operation::k##name, ServiceOf(Operation::k##name));
#define KV_PRODUCED(name, right)                                                 \
  Add<ProducedStream<v1::name##Request, v1::name##Response>>(Operation::k##name, \
                                                             ServiceOf(Operation::k##name));
#define KV_OTHER(name, right, handler) Add<handler>(Operation::k##name, ServiceOf(Operation::k##name));
#include "backend_api/operations.def"
  Add<UnaryReactor<v1::EndpointRequest, v1::EndpointResponse>>(Operation::kEndpoint, "kvstore.v1.Endpoints",
                                                               "Ask");
}

}  // namespace kvstore::server
