#pragma once

#include "kvstore/v1/endpoint.grpc.pb.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "server/calls_stream.h"
#include "server/stream_calls.h"
#include "server/unary_call.h"

namespace kvstore::server {

/// The service of kvstore.proto: each method starts a call of its kind.
class Service : public v1::KVStore::CallbackService {
 public:
  explicit Service(Core& core) : core_(core) {}

  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* GetServer(Context* context, const v1::GetServerRequest* request,
                                      v1::GetServerResponse* response) override {
    return Unary(Operation::kGetServer, context, request, response);
  }
  grpc::ServerUnaryReactor* GetMetrics(Context* context, const v1::GetMetricsRequest* request,
                                       v1::GetMetricsResponse* response) override {
    return Unary(Operation::kGetMetrics, context, request, response);
  }
  grpc::ServerUnaryReactor* CreateDataset(Context* context, const v1::CreateDatasetRequest* request,
                                          v1::CreateDatasetResponse* response) override {
    return Unary(Operation::kCreateDataset, context, request, response);
  }
  grpc::ServerUnaryReactor* AlterDataset(Context* context, const v1::AlterDatasetRequest* request,
                                         v1::AlterDatasetResponse* response) override {
    return Unary(Operation::kAlterDataset, context, request, response);
  }
  grpc::ServerUnaryReactor* DropDataset(Context* context, const v1::DropDatasetRequest* request,
                                        v1::DropDatasetResponse* response) override {
    return Unary(Operation::kDropDataset, context, request, response);
  }
  grpc::ServerUnaryReactor* GetDataset(Context* context, const v1::GetDatasetRequest* request,
                                       v1::GetDatasetResponse* response) override {
    return Unary(Operation::kGetDataset, context, request, response);
  }
  grpc::ServerUnaryReactor* ListDatasets(Context* context, const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) override {
    return Unary(Operation::kListDatasets, context, request, response);
  }
  grpc::ServerUnaryReactor* GetStats(Context* context, const v1::GetStatsRequest* request,
                                     v1::GetStatsResponse* response) override {
    return Unary(Operation::kGetStats, context, request, response);
  }
  grpc::ServerUnaryReactor* Migrate(Context* context, const v1::MigrateRequest* request,
                                    v1::MigrateResponse* response) override {
    return Unary(Operation::kMigrate, context, request, response);
  }
  grpc::ServerUnaryReactor* GetRow(Context* context, const v1::GetRowRequest* request,
                                   v1::GetRowResponse* response) override {
    return Unary(Operation::kGetRow, context, request, response);
  }
  grpc::ServerUnaryReactor* PutRow(Context* context, const v1::PutRowRequest* request,
                                   v1::PutRowResponse* response) override {
    return Unary(Operation::kPutRow, context, request, response);
  }
  grpc::ServerUnaryReactor* DeleteRow(Context* context, const v1::DeleteRowRequest* request,
                                      v1::DeleteRowResponse* response) override {
    return Unary(Operation::kDeleteRow, context, request, response);
  }
  grpc::ServerWriteReactor<v1::GetRowsResponse>* GetRows(Context* context,
                                                         const v1::GetRowsRequest* request) override {
    return Stream<v1::GetRowsResponse>(Operation::kGetRows, context, request);
  }
  grpc::ServerUnaryReactor* PutRows(Context* context, const v1::PutRowsRequest* request,
                                    v1::PutRowsResponse* response) override {
    return Unary(Operation::kPutRows, context, request, response);
  }
  grpc::ServerUnaryReactor* DeleteRows(Context* context, const v1::DeleteRowsRequest* request,
                                       v1::DeleteRowsResponse* response) override {
    return Unary(Operation::kDeleteRows, context, request, response);
  }
  grpc::ServerWriteReactor<v1::ScanRowsResponse>* ScanRows(Context* context,
                                                           const v1::ScanRowsRequest* request) override {
    return Stream<v1::ScanRowsResponse>(Operation::kScanRows, context, request);
  }
  grpc::ServerUnaryReactor* ListPartitions(Context* context, const v1::ListPartitionsRequest* request,
                                           v1::ListPartitionsResponse* response) override {
    return Unary(Operation::kListPartitions, context, request, response);
  }
  grpc::ServerUnaryReactor* CreateObject(Context* context, const v1::CreateObjectRequest* request,
                                         v1::CreateObjectResponse* response) override {
    return Unary(Operation::kCreateObject, context, request, response);
  }
  grpc::ServerUnaryReactor* GetObject(Context* context, const v1::GetObjectRequest* request,
                                      v1::GetObjectResponse* response) override {
    return Unary(Operation::kGetObject, context, request, response);
  }
  grpc::ServerWriteReactor<v1::GetObjectsResponse>* GetObjects(
      Context* context, const v1::GetObjectsRequest* request) override {
    return Stream<v1::GetObjectsResponse>(Operation::kGetObjects, context, request);
  }
  grpc::ServerUnaryReactor* UpdateObject(Context* context, const v1::UpdateObjectRequest* request,
                                         v1::UpdateObjectResponse* response) override {
    return Unary(Operation::kUpdateObject, context, request, response);
  }
  grpc::ServerUnaryReactor* DeleteObject(Context* context, const v1::DeleteObjectRequest* request,
                                         v1::DeleteObjectResponse* response) override {
    return Unary(Operation::kDeleteObject, context, request, response);
  }
  grpc::ServerUnaryReactor* AddMapping(Context* context, const v1::AddMappingRequest* request,
                                       v1::AddMappingResponse* response) override {
    return Unary(Operation::kAddMapping, context, request, response);
  }
  grpc::ServerUnaryReactor* RemoveMapping(Context* context, const v1::RemoveMappingRequest* request,
                                          v1::RemoveMappingResponse* response) override {
    return Unary(Operation::kRemoveMapping, context, request, response);
  }
  grpc::ServerUnaryReactor* ListMapping(Context* context, const v1::ListMappingRequest* request,
                                        v1::ListMappingResponse* response) override {
    return Unary(Operation::kListMapping, context, request, response);
  }
  grpc::ServerUnaryReactor* CountMapping(Context* context, const v1::CountMappingRequest* request,
                                         v1::CountMappingResponse* response) override {
    return Unary(Operation::kCountMapping, context, request, response);
  }
  grpc::ServerUnaryReactor* ListObjects(Context* context, const v1::ListObjectsRequest* request,
                                        v1::ListObjectsResponse* response) override {
    return Unary(Operation::kListObjects, context, request, response);
  }
  grpc::ServerBidiReactor<v1::PutRowsRequest, v1::PutRowsResponse>* ImportRows(Context* context) override {
    auto* call = new ImportCall(core_, *context);
    call->Start();
    return call;
  }
  grpc::ServerWriteReactor<v1::CompactResponse>* Compact(Context* context,
                                                         const v1::CompactRequest* request) override {
    auto* call = new CompactCall(core_, *context, *request);
    call->Start();
    return call;
  }
  grpc::ServerBidiReactor<v1::CallsRequest, v1::CallsResponse>* Calls(Context* context) override {
    auto* stream = new CallsStream(core_, *context);
    stream->Start();
    return stream;
  }

 private:
  // Each call deletes itself when gRPC is done with it, at the earliest after it was returned.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Unary(Operation operation, Context* context, const Request* request,
                                  Response* response) {
    return MakeUnary(core_, operation, *context, *request, *response);
  }
  template <typename Response, typename Request>
  grpc::ServerWriteReactor<Response>* Stream(Operation operation, Context* context, const Request* request) {
    auto* call = new ProducedStream<Request, Response>(core_, operation, *context, *request);
    call->Start();
    return call;
  }

  Core& core_;
};

/// The service of endpoint.proto.
class EndpointService : public v1::Endpoints::CallbackService {
 public:
  explicit EndpointService(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* Ask(grpc::CallbackServerContext* context, const v1::EndpointRequest* request,
                                v1::EndpointResponse* response) override {
    return MakeUnary(core_, Operation::kEndpoint, *context, *request, *response);
  }

 private:
  Core& core_;
};

}  // namespace kvstore::server
