#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "server/call/access.h"
#include "tests/server/http_client.h"
#include "tests/server/resp/resp_client.h"
#include "tests/server/served.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Limits of callers and of datasets, at all doors. Most are of bytes a second, so that one read of a large
/// row uses them up for longer than any test takes.
namespace kvstore {
namespace {

using testing::Eventually;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::RespClient;

constexpr size_t kLarge = 1'000'000;
constexpr char kBytesOfAlice[] = "caller 'alice': is at its limit of 1000 bytes a second; try again in";

class CallerLimitsTest : public ::testing::Test {
 protected:
  /// Serves the datasets "plain" and "shared", which have the row "large" of kLarge bytes.
  ///
  /// alice     The limits of a caller; bob and ops have none.
  /// datasets  Those of datasets.
  void Serve(const std::string& alice, const std::string& datasets = "{}") {
    WriteTokens(alice, datasets);
    ServerOptions options = testing::TestServerOptions();
    options.tokens = dir_ / "tokens.json";
    options.resp = "127.0.0.1:" + std::to_string(resp_port_);
    options.http_api = "127.0.0.1:" + std::to_string(http_port_);
    served_ = std::make_unique<testing::Served>(options);
    const std::string value(kLarge, 'v');
    const CellWrite cell{"c", value, 1};
    for (const char* name : {"plain", "shared"}) {
      ASSERT_OK(served_->router().CreateDataset({.name = name}));
      ASSERT_OK(served_->router().PutRow(name, "large", {&cell, 1}, {}).status());
    }
    stub_ = v1::KVStore::NewStub(grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials()));
  }
  void WriteTokens(const std::string& alice, const std::string& datasets,
                   const std::string& rights = R"({"*": "write"})") {
    const auto entry = [](const std::string& name, const std::string& allowed, const std::string& limits) {
      return R"({"name": ")" + name + R"(", "sha256": ")" + server::TokenDigest(name) + R"(", "rights": )" +
             allowed + (limits.empty() ? "" : R"(, "limits": )" + limits) + "}";
    };
    std::ofstream(dir_ / "tokens.new")
        << R"({"tokens": [)" << entry("alice", rights, alice) << "," << entry("bob", R"({"*": "write"})", "")
        << "," << entry("ops", R"({"*": "admin"})", "") << R"(], "dataset_limits": )" << datasets << "}";
    std::filesystem::rename(dir_ / "tokens.new", dir_ / "tokens.json");
  }

  /// Puts so many more large rows.
  void PutMore(const std::string& dataset, int rows) {
    const std::string value(kLarge, 'v');
    const CellWrite cell{"c", value, 1};
    for (int i = 0; i < rows; ++i) {
      ASSERT_OK(served_->router().PutRow(dataset, "r" + std::to_string(i), {&cell, 1}, {}).status());
    }
  }
  /// Reads a row by a single RPC, which no client repeats.
  grpc::Status Get(const std::string& caller, const std::string& dataset = "plain",
                   const std::string& row = "large") {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + caller);
    v1::GetRowRequest request;
    request.set_dataset(dataset);
    request.set_row(row);
    v1::GetRowResponse response;
    return stub_->GetRow(&context, request, &response);
  }
  /// Imports a large row as alice, reads the answer, and sends another one.
  std::unique_ptr<grpc::ClientReaderWriter<v1::PutRowsRequest, v1::PutRowsResponse>> ImportTwo(
      grpc::ClientContext& context, v1::PutRowsResponse& response) {
    context.AddMetadata("authorization", "Bearer alice");
    auto import = stub_->ImportRows(&context);
    v1::PutRowsRequest request;
    request.set_dataset("plain");
    v1::RowWrite& write = *request.add_writes();
    write.set_row("r");
    v1::CellWrite& cell = *write.add_cells();
    cell.set_column("c");
    cell.set_value(std::string(kLarge, 'w'));
    EXPECT_TRUE(import->Write(request));
    EXPECT_TRUE(import->Read(&response));
    EXPECT_TRUE(import->Write(request));
    return import;
  }
  double Limited(const std::string& labels) const {
    return served_->Metric("kvstore_calls_limited_total{" + labels + "}", "ops");
  }

  const testing::TempDir dir_;
  const uint16_t resp_port_ = testing::FreePort();
  const uint16_t http_port_ = testing::FreePort();
  std::unique_ptr<testing::Served> served_;
  std::unique_ptr<v1::KVStore::Stub> stub_;
};

TEST_F(CallerLimitsTest, AnswersCountAsBytesASecond) {
  Serve(R"({"bytes_per_s": 1000})");
  EXPECT_TRUE(Get("alice").ok());
  const grpc::Status refused = Get("alice", "plain", "none");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr(kBytesOfAlice));
  EXPECT_TRUE(Get("bob").ok());
  EXPECT_TRUE(Get("bob").ok());
  EXPECT_EQ(Limited(R"(caller="alice",limit="bytes_per_s")"), 1);
  EXPECT_EQ(Limited(R"(caller="alice",limit="calls_per_s")"), 0);
}

TEST_F(CallerLimitsTest, RequestsCountAsBytesASecond) {
  Serve(R"({"bytes_per_s": 1000})");
  const auto put = [&] {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer alice");
    v1::PutRowRequest request;
    request.set_dataset("plain");
    request.set_row("r");
    v1::CellWrite& cell = *request.add_cells();
    cell.set_column("c");
    cell.set_value(std::string(kLarge, 'w'));
    v1::PutRowResponse response;
    return stub_->PutRow(&context, request, &response);
  };
  EXPECT_TRUE(put().ok());
  EXPECT_THAT(put().error_message(), HasSubstr(kBytesOfAlice));
}

TEST_F(CallerLimitsTest, CallsASecondAreLimitedAndComeBack) {
  Serve(R"({"calls_per_s": 2})");
  grpc::Status refused;
  ASSERT_TRUE(Eventually([&] { return !(refused = Get("alice", "plain", "none")).ok(); }));
  EXPECT_THAT(refused.error_message(), HasSubstr("caller 'alice': is at its limit of 2 calls a second"));
  EXPECT_TRUE(Eventually([&] { return Get("alice", "plain", "none").ok(); }));
  EXPECT_TRUE(Get("bob").ok());
}

TEST_F(CallerLimitsTest, AClientWaitsAndTriesAgain) {
  Serve(R"({"calls_per_s": 20})");
  const auto store = served_->Client({.token = "alice"});
  // Twice what may come at once.
  for (int i = 0; i < 40; ++i) EXPECT_OK(store->GetRow("plain", "none", {}).status());
}

TEST_F(CallerLimitsTest, CallsInFlightAreLimited) {
  Serve(R"({"max_calls": 1})");
  PutMore("plain", 30);
  {
    // A scan whose messages are not taken, and more of them than the connection has room for.
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer alice");
    v1::ScanRowsRequest request;
    request.set_dataset("plain");
    const auto scan = stub_->ScanRows(&context, request);
    grpc::Status refused;
    ASSERT_TRUE(Eventually([&] { return !(refused = Get("alice", "plain", "none")).ok(); }));
    EXPECT_THAT(refused.error_message(), HasSubstr("caller 'alice': is at its limit of 1 calls in flight"));
    EXPECT_TRUE(Get("bob").ok());
    context.TryCancel();
    scan->Finish();
  }
  EXPECT_TRUE(Eventually([&] { return Get("alice", "plain", "none").ok(); }));
}

TEST_F(CallerLimitsTest, ADatasetsLimitHoldsForAllOfItsCallersTogether) {
  Serve("", R"({"shared": {"bytes_per_s": 1000}})");
  EXPECT_TRUE(Get("alice", "shared").ok());
  for (const char* caller : {"alice", "bob"}) {
    EXPECT_THAT(Get(caller, "shared", "none").error_message(),
                HasSubstr("dataset 'shared': is at its limit of 1000 bytes a second"));
    EXPECT_TRUE(Get(caller, "plain").ok());
  }
  EXPECT_EQ(Limited(R"(dataset="shared",limit="bytes_per_s")"), 2);
}

TEST_F(CallerLimitsTest, AScanWaits) {
  constexpr uint64_t kPerSecond = 2 << 20;
  Serve(R"({"bytes_per_s": )" + std::to_string(kPerSecond) + "}");
  constexpr int kRows = 12;
  PutMore("shared", kRows);
  const auto store = served_->Client({.token = "alice"});
  ASSERT_OK_AND_ASSIGN(const auto scan, store->ScanRows("shared", {}, {}));
  int rows = 0;
  std::thread reader([&] {
    for (ScannedRow row;; ++rows) {
      const auto next = scan->Next(row);
      EXPECT_OK(next.status());
      if (!next.value_or(false)) return;
    }
  });
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_held", "ops") == 1; }));
  reader.join();
  EXPECT_EQ(rows, kRows + 1);
}

TEST_F(CallerLimitsTest, AnImportWaitsAndEndsWithItsClient) {
  Serve(R"({"bytes_per_s": 1000})");
  grpc::ClientContext context;
  v1::PutRowsResponse response;
  const auto import = ImportTwo(context, response);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_held", "ops") == 1; }));
  // An import that waits is in memory, and counted.
  EXPECT_GT(served_->Metric("kvstore_bytes_in_flight", "ops"), kLarge);
  context.TryCancel();
  // The call that asks for the figures is one.
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight", "ops") == 1; }));
  import->Finish();
  // The second message, which was not carried out, was not taken from the limit: a thousand seconds each.
  const std::string refused = Get("alice", "plain", "none").error_message();
  const std::string before = "try again in ";
  ASSERT_THAT(refused, HasSubstr(before));
  EXPECT_LT(std::stoi(refused.substr(refused.find(before) + before.size())), 1'100'000);
}

TEST_F(CallerLimitsTest, AnImportThatWaitsLosesItsRight) {
  Serve(R"({"bytes_per_s": 1000})");
  grpc::ClientContext context;
  v1::PutRowsResponse response;
  const auto import = ImportTwo(context, response);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_held", "ops") == 1; }));
  WriteTokens(R"({"bytes_per_s": 1000})", "{}", /*rights=*/R"({"*": "read"})");
  EXPECT_FALSE(import->Read(&response));
  EXPECT_EQ(import->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(CallerLimitsTest, AScanThatIsOpenWaitsForLimitsThatCameLater) {
  Serve("");
  PutMore("shared", 30);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer bob");
  v1::ScanRowsRequest request;
  request.set_dataset("shared");
  const auto scan = stub_->ScanRows(&context, request);
  v1::ScanRowsResponse message;
  ASSERT_TRUE(scan->Read(&message));
  WriteTokens("", R"({"shared": {"bytes_per_s": 1000}})");
  ASSERT_TRUE(Eventually([&] { return Limited(R"(dataset="shared",limit="bytes_per_s")") >= 0; }));
  std::thread reader([&] {
    while (scan->Read(&message)) {
    }
  });
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_held", "ops") == 1; }));
  // A server that stops does not wait for that.
  served_->server().Drain();
  reader.join();
  const grpc::Status end = scan->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(end.error_message(), HasSubstr("the server stops"));
}

TEST_F(CallerLimitsTest, OneCallAfterTheOtherIsOneInFlight) {
  Serve(R"({"max_calls": 1})");
  for (int i = 0; i < 300; ++i) {
    const grpc::Status got = Get("alice", "plain", "none");
    EXPECT_TRUE(got.ok()) << got.error_message();
  }
}

TEST_F(CallerLimitsTest, HttpSaysWhenToTryAgain) {
  Serve(R"({"bytes_per_s": 1000})");
  HttpClient client(http_port_);
  const testing::HttpHeaders alice = {{"Authorization", "Bearer alice"}};
  const nlohmann::json request = {{"dataset", "plain"}, {"row", "large"}};
  EXPECT_EQ(client.Post("get_row", request, alice).status, 200);
  const HttpAnswer refused = client.Post("get_row", request, alice);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.code(), "RESOURCE_EXHAUSTED");
  EXPECT_THAT(refused.message(), HasSubstr(kBytesOfAlice));
  // A thousand seconds, but for the one that comes at once and what has passed.
  const int wait = std::stoi(refused.headers.at("retry-after"));
  EXPECT_GT(wait, 500);
  EXPECT_LE(wait, 1000 + 1);
  EXPECT_EQ(client.Post("get_row", request, {{"Authorization", "Bearer bob"}}).status, 200);
}

TEST_F(CallerLimitsTest, TheRedisProtocolWaitsForAMomentAndThenSaysSo) {
  Serve(R"({"bytes_per_s": 1000})");
  RespClient client("127.0.0.1:" + std::to_string(resp_port_));
  EXPECT_EQ(client.Do("AUTH alice"), "OK");
  EXPECT_THAT(client.Do("HGET plain:large c"), HasSubstr("vvv"));
  EXPECT_THAT(client.Do("HGET plain:none c"), HasSubstr(std::string("-BUSY ") + kBytesOfAlice));
  // It is tried again and again meanwhile, and refused once.
  EXPECT_EQ(Limited(R"(caller="alice",limit="bytes_per_s")"), 1);
  RespClient other("127.0.0.1:" + std::to_string(resp_port_));
  EXPECT_EQ(other.Do("AUTH bob"), "OK");
  EXPECT_EQ(other.Do("HGET plain:none c"), "nil");
}

TEST_F(CallerLimitsTest, EachDatasetOfACommandsKeysCounts) {
  Serve("", R"({"shared": {"bytes_per_s": 1000}})");
  EXPECT_TRUE(Get("bob", "shared").ok());
  RespClient client("127.0.0.1:" + std::to_string(resp_port_));
  EXPECT_EQ(client.Do("AUTH bob"), "OK");
  EXPECT_EQ(client.Do("EXISTS plain:large plain:none"), "(1)");
  EXPECT_THAT(client.Do("EXISTS plain:large shared:large"),
              HasSubstr("-BUSY dataset 'shared': is at its limit"));
}

TEST_F(CallerLimitsTest, ACommandOnSeveralKeysCountsOnceForEachDataset) {
  Serve("", R"({"shared": {"calls_per_s": 1}})");
  RespClient client("127.0.0.1:" + std::to_string(resp_port_));
  EXPECT_EQ(client.Do("AUTH bob"), "OK");
  EXPECT_EQ(client.Do("EXISTS plain:large shared:large plain:large shared:large"), "(4)");
}

/// It is begun again by a worker, which finds that the disk must be waited for.
TEST_F(CallerLimitsTest, ACommandThatIsBegunAgainCountsOnce) {
  Serve("", R"({"shared": {"calls_per_s": 1}})");
  ASSERT_OK(served_->router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  RespClient client("127.0.0.1:" + std::to_string(resp_port_));
  EXPECT_EQ(client.Do("AUTH bob"), "OK");
  EXPECT_EQ(client.Do("MSET plain:a 1 shared:b 2 safe:c 3"), "OK");
}

TEST_F(CallerLimitsTest, TheDoorsShareOneLimit) {
  Serve(R"({"bytes_per_s": 1000})");
  EXPECT_TRUE(Get("alice").ok());
  EXPECT_EQ(HttpClient(http_port_)
                .Post("get_row", {{"dataset", "plain"}, {"row", "none"}}, {{"Authorization", "Bearer alice"}})
                .status,
            429);
}

TEST_F(CallerLimitsTest, LimitsChangeWithTheList) {
  Serve(R"({"bytes_per_s": 1000})", R"({"shared": {"bytes_per_s": 1000}})");
  EXPECT_TRUE(Get("alice").ok());
  EXPECT_FALSE(Get("alice", "plain", "none").ok());
  EXPECT_TRUE(Get("bob", "shared").ok());
  EXPECT_FALSE(Get("bob", "shared", "none").ok());
  WriteTokens("", "{}");
  EXPECT_TRUE(Eventually([&] { return Get("alice", "plain", "none").ok(); }));
  EXPECT_TRUE(Eventually([&] { return Get("bob", "shared", "none").ok(); }));
  EXPECT_EQ(Limited(R"(caller="alice",limit="bytes_per_s")"), -1);
  // Bytes that were taken at another limit are forgotten.
  WriteTokens(R"({"bytes_per_s": 1000})", "{}");
  EXPECT_TRUE(Eventually([&] { return !Get("alice").ok(); }));
  WriteTokens(R"({"bytes_per_s": 1000000000})", "{}");
  EXPECT_TRUE(Eventually([&] { return Get("alice", "plain", "none").ok(); }));
}

TEST_F(CallerLimitsTest, FiguresAreServedWhateverTheLimits) {
  Serve(R"({"bytes_per_s": 1000})");
  for (int i = 0; i < 5; ++i) EXPECT_GE(served_->Metric("kvstore_calls_in_flight", "ops"), 0);
}

}  // namespace
}  // namespace kvstore
