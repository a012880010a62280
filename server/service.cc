#include "server/service.h"

#include <fmt/format.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "server/calls_stream.h"
#include "server/stream_calls.h"
#include "server/unary_call.h"

namespace kvstore::server {
namespace {

template <typename Request, typename Response>
auto* HandlerOf(
    std::function<grpc::ServerBidiReactor<Request, Response>*(grpc::CallbackServerContext*)> start) {
  return new grpc::internal::CallbackBidiHandler<Request, Response>(std::move(start));
}

/// What a reactor reads and writes.
template <typename Request, typename Response>
grpc::ServerBidiReactor<Request, Response> BaseOf(const grpc::ServerBidiReactor<Request, Response>*);

}  // namespace

template <typename Reactor>
void Service::Add(Operation operation, const char* service, const char* method) {
  using Base = decltype(BaseOf(static_cast<const Reactor*>(nullptr)));
  const std::string& name = names_.emplace_back(
      fmt::format("/{}/{}", service, method != nullptr ? method : Traits(operation).name));
  AddMethod(
      new grpc::internal::RpcServiceMethod(name.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodCallback(
      static_cast<int>(names_.size()) - 1,
      HandlerOf(std::function([this, operation](grpc::CallbackServerContext* context) -> Base* {
        auto* call = new Reactor(core_, operation, *context);
        call->Start();
        return call;
      })));
}

Service::Service(Core& core) : core_(core) {
  using enum Operation;
  Add<UnaryReactor<v1::GetServerRequest, v1::GetServerResponse>>(kGetServer);
  Add<UnaryReactor<v1::GetMetricsRequest, v1::GetMetricsResponse>>(kGetMetrics);
  Add<UnaryReactor<v1::CreateDatasetRequest, v1::CreateDatasetResponse>>(kCreateDataset);
  Add<UnaryReactor<v1::AlterDatasetRequest, v1::AlterDatasetResponse>>(kAlterDataset);
  Add<UnaryReactor<v1::DropDatasetRequest, v1::DropDatasetResponse>>(kDropDataset);
  Add<UnaryReactor<v1::GetDatasetRequest, v1::GetDatasetResponse>>(kGetDataset);
  Add<UnaryReactor<v1::ListDatasetsRequest, v1::ListDatasetsResponse>>(kListDatasets);
  Add<UnaryReactor<v1::GetStatsRequest, v1::GetStatsResponse>>(kGetStats);
  Add<CompactCall>(kCompact);
  Add<UnaryReactor<v1::MigrateRequest, v1::MigrateResponse>>(kMigrate);

  Add<UnaryReactor<v1::GetRowRequest, v1::GetRowResponse>>(kGetRow);
  Add<UnaryReactor<v1::PutRowRequest, v1::PutRowResponse>>(kPutRow);
  Add<UnaryReactor<v1::DeleteRowRequest, v1::DeleteRowResponse>>(kDeleteRow);
  Add<ProducedStream<v1::GetRowsRequest, v1::GetRowsResponse>>(kGetRows);
  Add<UnaryReactor<v1::PutRowsRequest, v1::PutRowsResponse>>(kPutRows);
  Add<UnaryReactor<v1::DeleteRowsRequest, v1::DeleteRowsResponse>>(kDeleteRows);
  Add<ImportCall>(kImportRows);
  Add<ProducedStream<v1::ScanRowsRequest, v1::ScanRowsResponse>>(kScanRows);
  Add<UnaryReactor<v1::ListPartitionsRequest, v1::ListPartitionsResponse>>(kListPartitions);

  Add<UnaryReactor<v1::CreateObjectRequest, v1::CreateObjectResponse>>(kCreateObject);
  Add<UnaryReactor<v1::GetObjectRequest, v1::GetObjectResponse>>(kGetObject);
  Add<ProducedStream<v1::GetObjectsRequest, v1::GetObjectsResponse>>(kGetObjects);
  Add<UnaryReactor<v1::UpdateObjectRequest, v1::UpdateObjectResponse>>(kUpdateObject);
  Add<UnaryReactor<v1::DeleteObjectRequest, v1::DeleteObjectResponse>>(kDeleteObject);

  Add<UnaryReactor<v1::AddMappingRequest, v1::AddMappingResponse>>(kAddMapping);
  Add<UnaryReactor<v1::RemoveMappingRequest, v1::RemoveMappingResponse>>(kRemoveMapping);
  Add<UnaryReactor<v1::ListMappingRequest, v1::ListMappingResponse>>(kListMapping);
  Add<UnaryReactor<v1::CountMappingRequest, v1::CountMappingResponse>>(kCountMapping);
  Add<UnaryReactor<v1::ListObjectsRequest, v1::ListObjectsResponse>>(kListObjects);

  Add<CallsStream>(kCalls);

  Add<UnaryReactor<v1::EndpointRequest, v1::EndpointResponse>>(kEndpoint, "kvstore.v1.Endpoints", "Ask");
}

}  // namespace kvstore::server
