#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// Writes a cell of column "c" of the dataset "rows", at timestamp 1.
inline absl::Status PutCell(KVStore& store, std::string_view row, std::string_view value) {
  const CellWrite cell{"c", value, 1};
  return store.PutRow("rows", row, {&cell, 1}, {}).status();
}

/// A channel without the settings of our clients, as any gRPC program makes one.
inline std::unique_ptr<v1::KVStore::Stub> Stub(const std::string& address) {
  return v1::KVStore::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

/// A server with a dataset "rows", and a client of it.
class ServerTest : public ::testing::Test {
 protected:
  void Serve(const ServerOptions& options = TestServerOptions()) {
    served_ = std::make_unique<Served>(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "rows"}));
    store_ = served_->Client();
  }

  std::unique_ptr<Served> served_;
  std::unique_ptr<KVStore> store_;
};

}  // namespace kvstore::testing
