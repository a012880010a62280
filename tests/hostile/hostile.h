#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore_api/connect.h"

namespace kvstore::testing {

/// Answers whatever a test wants: each function below is called once a call, perhaps by several threads at a
/// time. A test may replace a function once its client has given up a call, although that call still runs in
/// the old one.
class Hostile : public v1::KVStore::Service {
 public:
  Hostile() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Hostile() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::unique_ptr<KVStore> Client() const { return *Connect(address()); }

  template <typename Message>
  using Unary = std::function<void(grpc::ServerContext& context, Message& answer)>;
  template <typename Message>
  using Stream = std::function<void(grpc::ServerWriter<Message>& stream)>;
  using MultiplexedStream = grpc::ServerReaderWriter<v1::CallsResponse, v1::CallsRequest>;
  using Import = grpc::ServerReaderWriter<v1::PutRowsResponse, v1::PutRowsRequest>;

  Unary<v1::GetDatasetResponse> get_dataset;
  Unary<v1::ListDatasetsResponse> list_datasets;
  Unary<v1::MigrateResponse> migrate;
  Unary<v1::GetRowResponse> get_row;
  Unary<v1::PutRowsResponse> put_rows;
  Unary<v1::DeleteRowsResponse> delete_rows;
  Unary<v1::GetObjectResponse> get_object;
  Unary<v1::UpdateObjectResponse> update_object;
  grpc::Status update_end;  ///< How update_object ends.
  Unary<v1::ListMappingResponse> list_mapping;
  Unary<v1::ListObjectsResponse> list_objects;
  Unary<v1::ScanObjectsResponse> scan_objects;
  Unary<v1::ScanMappingsResponse> scan_mappings;
  Stream<v1::GetRowsResponse> get_rows;
  Stream<v1::GetObjectsResponse> get_objects;
  Stream<v1::ScanRowsResponse> scan_rows;
  std::function<void(Import& stream)> import_rows;
  std::function<grpc::Status(MultiplexedStream& stream)> calls;

 private:
  using Context = grpc::ServerContext;
  // These take copies of the functions, which live until they return.
  template <typename Message>
  static grpc::Status Do(Unary<Message> script, Context& context, Message& answer) {
    script(context, answer);
    return grpc::Status::OK;
  }
  template <typename Message>
  static grpc::Status Do(Stream<Message> script, grpc::ServerWriter<Message>& stream) {
    script(stream);
    return grpc::Status::OK;
  }
  grpc::Status GetServer(Context*, const v1::GetServerRequest*, v1::GetServerResponse* answer) override {
    answer->set_instance("hostile");
    return grpc::Status::OK;
  }
  grpc::Status GetDataset(Context* context, const v1::GetDatasetRequest*,
                          v1::GetDatasetResponse* answer) override {
    return Do(get_dataset, *context, *answer);
  }
  grpc::Status ListDatasets(Context* context, const v1::ListDatasetsRequest*,
                            v1::ListDatasetsResponse* answer) override {
    return Do(list_datasets, *context, *answer);
  }
  grpc::Status Migrate(Context* context, const v1::MigrateRequest*, v1::MigrateResponse* answer) override {
    return Do(migrate, *context, *answer);
  }
  grpc::Status GetRow(Context* context, const v1::GetRowRequest*, v1::GetRowResponse* answer) override {
    return Do(get_row, *context, *answer);
  }
  grpc::Status PutRows(Context* context, const v1::PutRowsRequest*, v1::PutRowsResponse* answer) override {
    return Do(put_rows, *context, *answer);
  }
  grpc::Status DeleteRows(Context* context, const v1::DeleteRowsRequest*,
                          v1::DeleteRowsResponse* answer) override {
    return Do(delete_rows, *context, *answer);
  }
  grpc::Status GetObject(Context* context, const v1::GetObjectRequest*,
                         v1::GetObjectResponse* answer) override {
    return Do(get_object, *context, *answer);
  }
  grpc::Status UpdateObject(Context* context, const v1::UpdateObjectRequest*,
                            v1::UpdateObjectResponse* answer) override {
    Do(update_object, *context, *answer);
    return update_end;
  }
  grpc::Status ListMapping(Context* context, const v1::ListMappingRequest*,
                           v1::ListMappingResponse* answer) override {
    return Do(list_mapping, *context, *answer);
  }
  grpc::Status ListObjects(Context* context, const v1::ListObjectsRequest*,
                           v1::ListObjectsResponse* answer) override {
    return Do(list_objects, *context, *answer);
  }
  grpc::Status ScanObjects(Context* context, const v1::ScanObjectsRequest*,
                           v1::ScanObjectsResponse* answer) override {
    return Do(scan_objects, *context, *answer);
  }
  grpc::Status ScanMappings(Context* context, const v1::ScanMappingsRequest*,
                            v1::ScanMappingsResponse* answer) override {
    return Do(scan_mappings, *context, *answer);
  }
  grpc::Status GetRows(Context*, const v1::GetRowsRequest*,
                       grpc::ServerWriter<v1::GetRowsResponse>* stream) override {
    return Do(get_rows, *stream);
  }
  grpc::Status GetObjects(Context*, const v1::GetObjectsRequest*,
                          grpc::ServerWriter<v1::GetObjectsResponse>* stream) override {
    return Do(get_objects, *stream);
  }
  grpc::Status ScanRows(Context*, const v1::ScanRowsRequest*,
                        grpc::ServerWriter<v1::ScanRowsResponse>* stream) override {
    return Do(scan_rows, *stream);
  }
  grpc::Status ImportRows(Context*, Import* stream) override {
    const auto script = import_rows;
    script(*stream);
    return grpc::Status::OK;
  }
  grpc::Status Calls(Context*, MultiplexedStream* stream) override {
    const auto script = calls;
    return script(*stream);
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// Returns a handler that answers one message with so many results.
template <typename Response>
Response Results(int count) {
  Response response;
  for (int i = 0; i < count; ++i) response.add_results();
  return response;
}

}  // namespace kvstore::testing
