#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "server/call/call.h"
#include "tests/server/http_fixture.h"
#include "tests/server/noted_operations.h"
#include "tests/server/token_list.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"

/// Tests of what a server tells of itself over HTTP, and of the operators' commands on its fleet.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;
using testing::NotedOperations;

class HttpServerTest : public HttpTest {
 protected:
  /// The token of each caller is its name.
  void ServeWithTokens(ServerParts parts = {}) {
    testing::WriteTokenList(dir_ / "tokens.json",
                            {{"ops", R"({"*": "admin"})"},
                             {"some", R"({"rows": "write", "pins": "none", "reports/visits": "read"})"}});
    ServerOptions options = Options();
    options.tokens = dir_ / "tokens.json";
    Serve(options, std::move(parts));
  }
  static HttpHeaders As(const std::string& caller) { return {{"Authorization", "Bearer " + caller}}; }
  HttpAnswer Operate(const Json& command, const std::string& caller = "ops") const {
    return HttpClient(port()).Post("operate_shards", command, As(caller));
  }

  const testing::TempDir dir_;
};

TEST_F(HttpServerTest, ACallerIsToldWhatItMayDo) {
  NotedOperations operations([](const ShardEvents&) { return Json::object(); });
  ServeWithTokens({.shard_operations = &operations});
  const Json ops = Ok("get_server", Json::object(), As("ops"));
  EXPECT_EQ(ops["caller"], "ops");
  EXPECT_EQ(ops["rights"], (Json{{"*", "admin"}}));
  EXPECT_EQ(ops["parts"], Json::array({"shard_operations"}));
  EXPECT_EQ(ops["reports_dataset"], "reports");
  const Json some = Ok("get_server", Json::object(), As("some"));
  EXPECT_EQ(some["rights"],
            (Json{{"*", "none"}, {"rows", "write"}, {"pins", "none"}, {"reports/visits", "read"}}));
  // To strangers, and to those whose token is not known, it says what it always did.
  for (const HttpHeaders& stranger : {HttpHeaders{}, As("wrong")})
    EXPECT_EQ(Ok("get_server", Json::object(), stranger).size(), 4u);
}

TEST_F(HttpServerTest, WhereEverybodyMayDoEverythingThatIsSaid) {
  NotedOperations operations([](const ShardEvents&) { return Json::object(); });
  Serve(Options(), {.shard_operations = &operations});
  const Json answer = Ok("get_server", Json::object());
  EXPECT_EQ(answer["caller"], "");
  EXPECT_EQ(answer["rights"], (Json{{"*", "admin"}}));
  EXPECT_EQ(answer["parts"], Json::array()) << "nobody is known to be an operator here";
}

TEST_F(HttpServerTest, TheLastHourIsTold) {
  Serve();
  PutCell("user:7");
  HttpClient(port()).Post("get_row", {{"dataset", "rows"}});  // fails
  Json told;
  ASSERT_TRUE(Eventually([&] {
    told = Ok("get_history", Json::object());
    return told["operations"].contains("PutRow");
  }));
  EXPECT_EQ(told["step_ms"], 10'000);
  const Json& put = told["operations"]["PutRow"][0];
  EXPECT_EQ(put[0].get<uint64_t>() % 10'000, 0u);
  EXPECT_EQ(put[1], 1);
  EXPECT_EQ(put[2], 0);
  EXPECT_GE(told["datasets"]["rows"][0][1], 1);
  EXPECT_FALSE(told["datasets"].contains(""));
  const Json later = Ok("get_history", {{"after_ms", told["steps"].back()}});
  EXPECT_FALSE(later["operations"].contains("PutRow"));
  EXPECT_FALSE(OkGet("/v1/history?after_ms=99999999999999")["steps"].empty());
}

TEST_F(HttpServerTest, AnOperationOnShardsIsCarriedOutInTheNameOfItsCaller) {
  NotedOperations operations([](const ShardEvents& events) -> absl::StatusOr<Json> {
    events.line("fenced A");
    if (!events.progress("switch", 1, 2)) return absl::CancelledError("stopped");
    return Json{{"master", "B"}};
  });
  ServeWithTokens({.shard_operations = &operations});
  const Json answer =
      Ok("operate_shards",
         {{"command", "promote"}, {"host", "B"}, {"dry_run", true}, {"who", "somebody else"}}, As("ops"));
  EXPECT_EQ(answer["answer"], (Json{{"master", "B"}}));
  EXPECT_EQ(answer["lines"], Json::array({"fenced A"}));
  Json command = operations.commands().back();
  EXPECT_TRUE(command["who"].get<std::string>().starts_with("ops from ipv4:127.0.0.1:")) << command;
  command.erase("who");
  EXPECT_EQ(command, (Json{{"command", "promote"}, {"host", "B"}, {"dry_run", true}}));
  Ok("operate_shards", {{"command", "release"}, {"id", "3fa29c1b"}}, As("ops"));
  EXPECT_EQ(operations.commands().back()["id"], "3fa29c1b");
  EXPECT_EQ(Operate({{"command", "promote"}}, "some").status, 403);
  EXPECT_EQ(Operate({{"host", "B"}}).status, 400);
}

TEST_F(HttpServerTest, WhatAnOperationToldBeforeItFailedIsInItsError) {
  NotedOperations operations([](const ShardEvents& events) -> absl::StatusOr<Json> {
    events.line("fenced A");
    events.line("B has everything");
    return absl::UnavailableError("ZooKeeper does not answer");
  });
  ServeWithTokens({.shard_operations = &operations});
  const HttpAnswer answer = Operate({{"command", "promote"}, {"host", "B"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.message(), "ZooKeeper does not answer; before that:\nfenced A\nB has everything");
}

TEST_F(HttpServerTest, ItIsStoppedWhenItsClientWaitsNoLonger) {
  NotedOperations operations([](const ShardEvents& events) -> absl::StatusOr<Json> {
    if (!Eventually([&] { return !events.progress("copy", 0, 0); })) return absl::InternalError("went on");
    return absl::CancelledError("stopped");
  });
  ServeWithTokens({.shard_operations = &operations});
  HttpHeaders headers = As("ops");
  headers["Kv-Timeout-Ms"] = "50";
  EXPECT_EQ(HttpClient(port()).Post("operate_shards", {{"command", "move"}}, headers).code(), "CANCELLED");
}

TEST_F(HttpServerTest, ItIsRefusedWhereNobodyIsKnown) {
  NotedOperations operations([](const ShardEvents&) { return Json::object(); });
  Serve(Options(), {.shard_operations = &operations});
  Fails("operate_shards", {{"command", "status"}}, 403, "PERMISSION_DENIED",
        "does not tell its callers apart");
  EXPECT_TRUE(operations.commands().empty());
}

TEST_F(HttpServerTest, AnOperationIsNotEndedByTheLimitsOfACall) {
  std::atomic<bool> limited{true};
  NotedOperations operations([&](const ShardEvents& events) -> absl::StatusOr<Json> {
    limited = CallScope::Current().deadline.has_value() || CallScope::Current().cancelled != nullptr;
    if (!events.progress("copy", 0, 0)) return absl::CancelledError("stopped");
    return Json::object();
  });
  ServeWithTokens({.shard_operations = &operations});
  EXPECT_EQ(Operate({{"command", "status"}}).status, 200);
  EXPECT_FALSE(limited);
}

TEST_F(HttpServerTest, AClientThatLeavesStopsItsOperation) {
  std::atomic<bool> began{false};
  std::atomic<bool> stopped{false};
  NotedOperations operations([&](const ShardEvents& events) -> absl::StatusOr<Json> {
    began = true;
    if (!Eventually([&] { return !events.progress("copy", 0, 0); })) return absl::InternalError("went on");
    stopped = true;
    return absl::CancelledError("stopped");
  });
  ServeWithTokens({.shard_operations = &operations});
  {
    HttpClient client(port());
    client.Send(testing::HttpRequest("POST", "/v1/operate_shards", R"({"command": "move"})", As("ops")));
    ASSERT_TRUE(Eventually([&] { return began.load(); }));
  }
  EXPECT_TRUE(Eventually([&] { return stopped.load(); }));
}

TEST_F(HttpServerTest, OnlySoManyOperationsAreUnderWay) {
  std::atomic<bool> release{false};
  std::atomic<size_t> running{0};
  NotedOperations operations([&](const ShardEvents&) -> absl::StatusOr<Json> {
    ++running;
    if (!Eventually([&] { return release.load(); })) return absl::InternalError("nobody released it");
    return Json::object();
  });
  ServeWithTokens({.shard_operations = &operations});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (size_t i = 0; i < server::Core::kMaxShardOperations; ++i) {
    clients.push_back(std::make_unique<HttpClient>(port()));
    clients.back()->Send(
        testing::HttpRequest("POST", "/v1/operate_shards", R"({"command": "move"})", As("ops")));
  }
  ASSERT_TRUE(Eventually([&] { return running == server::Core::kMaxShardOperations; }));
  EXPECT_EQ(Operate({{"command", "status"}}).status, 429);
  release = true;
  for (const auto& client : clients) EXPECT_EQ(client->Read().status, 200);
  EXPECT_EQ(Operate({{"command", "status"}}).status, 200);
}

}  // namespace
}  // namespace kvstore
