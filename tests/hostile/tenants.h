#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "server/call/access.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A server with tokens: "alice" may write the datasets "alice" and "maps", "bob" may administer "bob",
/// "xbob" may write "xbob", and "ops" may administer all. The token of each is its name.
class TenantsTest : public ::testing::Test {
 protected:
  void Serve(ServerOptions options = TestServerOptions(), Migrations* migrations = nullptr) {
    WriteTokens({"alice", "bob", "xbob", "ops"});
    options.tokens = tokens_;
    served_ = std::make_unique<Served>(options, ServerParts{.migrations = migrations});
    for (const char* name : {"alice", "bob", "xbob"}) {
      ASSERT_OK(served_->router().CreateDataset({.name = name}));
    }
    ASSERT_OK(served_->router().CreateDataset({.name = "maps", .shape = Shape::kMappings}));
    ASSERT_OK(served_->router().CreateDataset({.name = "docs", .shape = Shape::kObjects}));
    stub_ = v1::KVStore::NewStub(grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials()));
  }

  /// Replaces the list by one that has only these callers.
  void WriteTokens(const std::vector<std::string>& names) {
    static const std::map<std::string, std::string> kRights = {
        {"alice", R"({"alice": "write", "maps": "write"})"},
        {"bob", R"({"bob": "admin", "docs": "write"})"},
        {"xbob", R"({"xbob": "write"})"},
        {"ops", R"({"*": "admin"})"},
    };
    const std::filesystem::path fresh = dir_ / "tokens.new";
    {
      std::ofstream out(fresh);
      out << R"({"tokens": [)";
      const char* comma = "";
      for (const std::string& name : names) {
        out << comma << R"({"name": ")" << name << R"(", "sha256": ")" << server::TokenDigest(name)
            << R"(", "rights": )" << kRights.at(name) << "}";
        comma = ",\n";
      }
      out << "]}";
    }
    std::filesystem::rename(fresh, tokens_);
  }

  /// The name of the caller.
  static void As(grpc::ClientContext& context, const std::string& name) {
    context.AddMetadata("authorization", "Bearer " + name);
  }

  /// Makes a small read of the caller's own dataset.
  grpc::Status Get(const std::string& name) {
    grpc::ClientContext context;
    As(context, name);
    v1::GetRowRequest request;
    request.set_dataset(name);
    request.set_row("none");
    v1::GetRowResponse response;
    return stub_->GetRow(&context, request, &response);
  }

  /// Returns a figure of the server, asked for by ops.
  double Metric(const std::string& name) const { return served_->Metric(name, "ops"); }

  void PutRows(const std::string& dataset, int count, size_t bytes) {
    const std::string value(bytes, 'v');
    const CellWrite cell{"c", value, 1};
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(served_->router().PutRow(dataset, "r" + std::to_string(10'000 + i), {&cell, 1}, {}).status());
    }
  }

  const TempDir dir_;
  const std::filesystem::path tokens_ = dir_ / "tokens.json";
  std::unique_ptr<Served> served_;
  std::unique_ptr<v1::KVStore::Stub> stub_;
};

}  // namespace kvstore::testing
