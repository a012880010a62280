#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "catalog/file_catalog.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "router/router.h"
#include "server/call/access.h"
#include "server/server.h"
#include "tests/server/gated_backend.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// How the calls of one message of a stream are admitted, while a gate keeps those that were from ending.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::Gate;
using testing::Migrates;
using testing::TempDir;

constexpr uint64_t kCalls = 20;
constexpr uint64_t kShare = 4;  // of eight calls, for each of the callers

class StreamAdmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "tokens.json")
        << R"({"tokens": [{"name": "alice", "sha256": ")" << server::TokenDigest("alice")
        << R"(", "rights": {"gated": "read"}}, {"name": "ops", "sha256": ")" << server::TokenDigest("ops")
        << R"(", "rights": {"*": "admin"}}]})";
    Router::Backends backends;
    backends.emplace("gated", testing::MakeGatedBackend(gate_));
    router_ =
        *Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"), std::move(backends), "gated");
    ASSERT_OK(router_->CreateDataset({.name = "gated"}));
    gate_->Note("gated", "r", "v");
    ServerOptions options = testing::TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    options.limits.max_calls = 2 * kShare;
    server_ = *Server::Start(*router_, options);
    stub_ = v1::KVStore::NewStub(
        grpc::CreateChannel(server_->addresses()[0], grpc::InsecureChannelCredentials()));
  }

  static void As(grpc::ClientContext& context, const std::string& name) {
    context.AddMetadata("authorization", "Bearer " + name);
  }
  grpc::Status Get(const std::string& caller) {
    grpc::ClientContext context;
    As(context, caller);
    v1::GetRowRequest request;
    request.set_dataset("gated");
    request.set_row("r");
    v1::GetRowResponse response;
    return stub_->GetRow(&context, request, &response);
  }
  /// Returns a figure of the server; -1 if there is none.
  double Metric(const std::string& figure) {
    grpc::ClientContext context;
    As(context, "ops");
    v1::GetMetricsResponse metrics;
    if (!stub_->GetMetrics(&context, {}, &metrics).ok()) return -1;
    const std::string name = "\n" + figure + " ";
    const size_t at = metrics.text().find(name);
    return at == std::string::npos ? -1 : std::stod(metrics.text().substr(at + name.size()));
  }

  const TempDir dir_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::KVStore::Stub> stub_;
};

TEST_F(StreamAdmissionTest, CallsOverAStreamAreAdmittedOneByOne) {
  gate_->Set(Migrates("gated"));
  grpc::ClientContext context;
  As(context, "alice");
  const auto stream = stub_->Calls(&context);
  v1::CallsRequest request;
  for (uint64_t i = 0; i < kCalls; ++i) {
    v1::Call& call = *request.add_calls();
    call.set_number(i);
    call.mutable_get_row()->set_dataset("gated");
    call.mutable_get_row()->set_row("r");
  }
  ASSERT_TRUE(stream->Write(request));
  std::map<uint64_t, v1::Answer> answers;
  const auto read = [&](size_t count) {
    v1::CallsResponse response;
    while (answers.size() < count && stream->Read(&response)) {
      for (const v1::Answer& answer : response.answers()) answers[answer.number()] = answer;
    }
    return answers.size();
  };
  // The first ones fill the caller's share, as long as their dataset migrates. There is no room for another.
  ASSERT_EQ(read(kCalls - kShare), kCalls - kShare);
  for (uint64_t i = 0; i < kCalls; ++i) {
    ASSERT_EQ(answers.contains(i), i >= kShare) << i;
    if (i < kShare) continue;
    EXPECT_EQ(answers[i].error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted)) << i;
    EXPECT_EQ(answers[i].outcome(), "refused") << i;
  }
  EXPECT_EQ(Metric("kvstore_calls_refused_total"), kCalls - kShare);
  EXPECT_EQ(Get("alice").error_code(), grpc::RESOURCE_EXHAUSTED) << "also by the method of its own";
  gate_->Set(nullptr);
  EXPECT_TRUE(Get("ops").ok()) << "another caller has a share of its own";
  ASSERT_EQ(read(kCalls), kCalls);
  for (uint64_t i = 0; i < kShare; ++i) EXPECT_EQ(answers[i].get_row().items_size(), 1) << i;
  stream->WritesDone();
  v1::CallsResponse rest;
  EXPECT_FALSE(stream->Read(&rest));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return Get("alice").ok(); })) << "what has ended takes no room";
}

}  // namespace
}  // namespace kvstore
