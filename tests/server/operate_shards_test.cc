#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/caller.h"
#include "client/client.h"
#include "client/verb_request.h"
#include "kvstore/v1/shards.grpc.pb.h"
#include "server/call/access.h"
#include "server/call/call.h"
#include "tests/server/noted_operations.h"
#include "tests/server/server_fixture.h"
#include "tests/support/eventually.h"

/// The commands of operators on shards over the wire: who may give them, what arrives, what comes back, what
/// the log has of it. What the commands do is in tests/shardops/served_test.cc.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OperateShardsTest : public ::testing::Test {
 protected:
  OperateShardsTest() {
    const auto entry = [](const std::string& name, const std::string& rights) {
      return R"({"name": ")" + name + R"(", "sha256": ")" + server::TokenDigest("token-" + name) +
             R"(", "rights": )" + rights + "}";
    };
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [)" << entry("ops", R"({"*": "admin"})") << ","
                                        << entry("owner", R"({"events": "admin", "*": "write"})") << "]}";
    options_.tokens = dir_ / "tokens.json";
  }

  /// Serves operations that do this.
  void Serve(NotedOperations::Work work) {
    operations_ = std::make_unique<NotedOperations>(std::move(work));
    served_ = std::make_unique<Served>(options_, ServerParts{.shard_operations = operations_.get()});
  }
  std::unique_ptr<client::Client> ClientOf(const std::string& name) const {
    auto caller = client::Caller::Open(served_->address(), {.token = "token-" + name, .plain_token = true});
    EXPECT_OK(caller);
    return std::make_unique<client::Client>(*std::move(caller));
  }
  absl::StatusOr<Json> Ask(const std::string& name, const Json& command) const {
    return ClientOf(name)->Operate(command, {});
  }

  const TempDir dir_;
  ServerOptions options_ = TestServerOptions();
  std::unique_ptr<NotedOperations> operations_;
  std::unique_ptr<Served> served_;
};

absl::StatusOr<Json> Nothing(const ShardEvents&) { return Json::object(); }

const Json& Fence() {
  static const Json command = {{"command", "fence"}, {"host", "A"}};
  return command;
}

TEST_F(OperateShardsTest, EachVerbArrivesAsTheCommandThatItWas) {
  Serve(&Nothing);
  const std::vector<Json> commands = {
      {{"command", "set"}, {"mod", true}, {"map", "[\xff"}, {"unchecked", true}, {"seen", "7"}},
      {{"command", "undo"}, {"mod", true}, {"to", "0001"}, {"unchecked", true}, {"seen", "none"}},
      {{"command", "weight"}, {"first", 0U}, {"last", 7U}, {"weight", 0U}},
      {{"command", "init"}, {"ignore_empty", true}},
      {{"command", "status"}},
      {{"command", "check"}},
      {{"command", "open"}, {"first", 0U}, {"last", 7U}, {"master", "A"}, {"slave", "B"}, {"dry_run", true}},
      {{"command", "promote"},
       {"host", "B"},
       {"emergency", true},
       {"accept_loss", 0U},
       {"catch_up_ms", 9U},
       {"dry_run", true}},
      {{"command", "fence"}, {"host", "A"}},
      {{"command", "move"},
       {"mod", true},
       {"first", 0U},
       {"last", 3U},
       {"to", "C,D"},
       {"hold_writes", true},
       {"dry_run", true}},
      {{"command", "moves"}},
      {{"command", "cancel_move"},
       {"mod", true},
       {"first", 0U},
       {"last", 3U},
       {"from", "A,B"},
       {"to", "C,D"},
       {"gone", "C,D"}},
      {{"command", "finish_move"}, {"mod", true}, {"first", 0U}, {"last", 3U}, {"gone", "A,B"}},
      {{"command", "replace_slave"}, {"host", "B"}, {"by", "E"}, {"discard", true}, {"dry_run", true}},
      {{"command", "operations"}},
      {{"command", "release"}, {"id", "3fa29c1b"}, {"force", true}},
      {{"command", "operate_status"}},
      {{"command", "operate_journal"}},
  };
  // A verb that is added has a line here, too, with all of its options.
  const auto* const verbs = v1::OperateShardsRequest::descriptor()->FindOneofByName("verb");
  ASSERT_EQ(commands.size(), static_cast<size_t>(verbs->field_count()));
  for (size_t i = 0; i < commands.size(); ++i) {
    SCOPED_TRACE(i);
    const auto* const options = verbs->field(static_cast<int>(i))->message_type();
    EXPECT_EQ(static_cast<int>(commands[i].size()),
              options->field_count() + 1 + (commands[i].contains("dry_run") ? 1 : 0));
    ASSERT_OK(Ask("ops", commands[i]));
    Json arrived = operations_->commands().back();
    arrived.erase("who");
    EXPECT_EQ(arrived, commands[i]);
  }
}

TEST_F(OperateShardsTest, WhatNoVerbCanExpressIsNotSent) {
  Serve(&Nothing);
  EXPECT_THAT(Ask("ops", {{"command", "fence"}, {"file", "/etc/passwd"}}),
              FailsWith(StatusCode::kInvalidArgument, "has no such options"));
  EXPECT_THAT(Ask("ops", {{"command", "watch"}}), FailsWith(StatusCode::kInvalidArgument, "'watch' is none"));
  EXPECT_TRUE(operations_->commands().empty());
}

TEST_F(OperateShardsTest, ItIsRecordedInTheNameThatTheServerKnows) {
  Serve(&Nothing);
  ASSERT_OK(Ask("ops", Fence()));
  EXPECT_THAT(operations_->commands().back().value("who", ""), StartsWith("ops from ipv4:127.0.0.1:"));
  EXPECT_THAT(operations_->commands().back().value("who", ""), HasSubstr(", by the server "));
  // A caller cannot say who it is: there is no such option.
  Json named = Fence();
  named["who"] = "somebody else";
  EXPECT_THAT(Ask("ops", named), FailsWith(StatusCode::kInvalidArgument, "has no such options"));
}

TEST_F(OperateShardsTest, OnlyWhoAdministersAllDatasetsMayOperate) {
  Serve(&Nothing);
  EXPECT_THAT(Ask("owner", Fence()), FailsWith(StatusCode::kPermissionDenied, "'owner' lacks the right"));
  EXPECT_THAT(Ask("stranger", Fence()), FailsWith(StatusCode::kUnauthenticated, ""));
  EXPECT_TRUE(operations_->commands().empty());
  EXPECT_OK(Ask("ops", Fence()));
}

TEST_F(OperateShardsTest, AServerThatDoesNotKnowItsCallersLetsNobodyOperate) {
  options_.tokens.clear();
  Serve(&Nothing);
  client::Client anybody(client::Caller::Open(served_->address(), {}).value());
  EXPECT_THAT(anybody.Operate(Fence(), {}), FailsWith(StatusCode::kPermissionDenied, "server.tokens"));
  EXPECT_TRUE(operations_->commands().empty());
}

TEST_F(OperateShardsTest, AServerWithoutAFleetSaysSo) {
  served_ = std::make_unique<Served>(options_);
  EXPECT_THAT(Ask("ops", Fence()), FailsWith(StatusCode::kUnimplemented,
                                             "this server operates no shards: its configuration names"));
}

TEST_F(OperateShardsTest, LinesAndProgressComeInOrderAndBeforeTheAnswer) {
  Serve([](const ShardEvents& events) -> absl::StatusOr<Json> {
    for (int i = 0; i < 100; ++i) {
      events.line("line " + std::to_string(i));
      EXPECT_TRUE(events.progress("copy", static_cast<uint64_t>(i), 100));
    }
    events.line("\xff is not UTF-8");
    return Json{{"switches", 3U}};
  });
  std::vector<std::string> lines;
  uint64_t last = 0;
  const auto answer =
      ClientOf("ops")->Operate(Fence(), {.line = [&](const std::string& line) { lines.push_back(line); },
                                         .progress =
                                             [&](std::string_view step, uint64_t done, uint64_t total) {
                                               EXPECT_EQ(step, "copy");
                                               EXPECT_GE(done, last);
                                               EXPECT_EQ(total, 100u);
                                               last = done;
                                               return true;
                                             }});
  ASSERT_OK(answer);
  EXPECT_EQ(*answer, (Json{{"switches", 3U}}));
  ASSERT_EQ(lines.size(), 101u) << "none is left out";
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(lines[i], "line " + std::to_string(i));
  EXPECT_EQ(lines.back(), "\xff is not UTF-8");
}

TEST_F(OperateShardsTest, AnErrorComesAsAWhole) {
  const std::string text = "first\n" + std::string(50'000, 'x') + "\nlast";
  Serve([&](const ShardEvents&) { return absl::StatusOr<Json>(absl::FailedPreconditionError(text)); });
  const absl::Status status = Ask("ops", Fence()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()), text);
}

TEST_F(OperateShardsTest, AnAnswerThatIsTooLongIsAnError) {
  Serve([](const ShardEvents&) -> absl::StatusOr<Json> {
    return Json{{"problems", std::string(size_t{13} << 20, 'x')}};
  });
  EXPECT_THAT(Ask("ops", Fence()), FailsWith(StatusCode::kResourceExhausted, "run it with --config"));
}

TEST_F(OperateShardsTest, ARequestWithAnUnknownOptionIsRefused) {
  Serve(&Nothing);
  const auto send = [&](const v1::OperateShardsRequest& request) {
    const auto stub =
        v1::Shards::NewStub(grpc::CreateChannel(served_->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer token-ops");
    const auto stream = stub->OperateShards(&context, request);
    for (v1::OperateShardsResponse response; stream->Read(&response);) continue;
    return stream->Finish();
  };
  v1::OperateShardsRequest request;
  EXPECT_EQ(send(request).error_code(), grpc::INVALID_ARGUMENT) << "no verb at all";
  request.mutable_fence()->set_host("A");
  EXPECT_TRUE(send(request).ok());
  v1::OperateShardsRequest newer = request;
  newer.mutable_fence()->GetReflection()->MutableUnknownFields(newer.mutable_fence())->AddVarint(99, 1);
  EXPECT_THAT(send(newer).error_message(), HasSubstr("that this server does not know"));
  newer = request;
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(99, "");
  EXPECT_EQ(send(newer).error_code(), grpc::INVALID_ARGUMENT) << "a verb, or an option of all verbs";
  EXPECT_EQ(operations_->commands().size(), 1u);
}

/// Waits until the progress says that the work must stop.
absl::StatusOr<Json> WorkUntilStopped(const ShardEvents& events) {
  const bool stopped = Eventually([&] { return !events.progress("copy", 1, 2); });
  return stopped ? absl::StatusOr<Json>(absl::CancelledError("was stopped: run the command again to go on"))
                 : absl::StatusOr<Json>(Json::object());
}

TEST_F(OperateShardsTest, WorkStopsWhenItsClientIsGone) {
  std::atomic<int> stopped{0};
  std::atomic<bool> has_limits{false};
  Serve([&](const ShardEvents& events) {
    // Its steps must not be cut short by the limits of the call.
    has_limits = CallScope::Current().deadline.has_value() || CallScope::Current().cancelled != nullptr;
    auto answer = WorkUntilStopped(events);
    if (absl::IsCancelled(answer.status())) ++stopped;
    return answer;
  });
  {
    std::atomic<bool> cancelled{false};
    const CallScope scope(
        CallLimits{.deadline = CallLimits::Clock::now() + std::chrono::hours(1), .cancelled = &cancelled});
    const auto cancel = [&](std::string_view, uint64_t, uint64_t) {
      cancelled = true;
      return true;
    };
    const absl::Status gone =
        ClientOf("ops")->Operate(Fence(), {.line = nullptr, .progress = cancel}).status();
    EXPECT_THAT(gone, FailsWith(StatusCode::kCancelled, "kv shards move status"));
  }
  EXPECT_TRUE(Eventually([&] { return stopped == 1; }));
  EXPECT_FALSE(has_limits);
  // A client that stays, and says that it has seen enough.
  const auto stop = [](std::string_view, uint64_t, uint64_t) { return false; };
  const absl::Status enough = ClientOf("ops")->Operate(Fence(), {.line = nullptr, .progress = stop}).status();
  EXPECT_TRUE(absl::IsCancelled(enough)) << enough;
  EXPECT_TRUE(Eventually([&] { return stopped == 2; }));
}

TEST_F(OperateShardsTest, WorkStopsWhenTheServerStops) {
  std::atomic<bool> begun{false};
  Serve([&](const ShardEvents& events) {
    begun = true;
    return WorkUntilStopped(events);
  });
  absl::Status status;
  std::thread caller([&] { status = Ask("ops", Fence()).status(); });
  EXPECT_TRUE(Eventually([&] { return begun.load(); }));
  served_->server().Drain();
  caller.join();
  EXPECT_THAT(status, FailsWith(StatusCode::kCancelled, "run the command again to go on"));
}

TEST_F(OperateShardsTest, SoManyAreCarriedOutAtATimeAndNoneWaits) {
  std::atomic<size_t> running{0};
  std::atomic<bool> end{false};
  Serve([&](const ShardEvents&) -> absl::StatusOr<Json> {
    ++running;
    EXPECT_TRUE(Eventually([&] { return end.load(); }));
    return Json::object();
  });
  std::vector<std::thread> callers;
  for (size_t i = 0; i < server::Core::kMaxShardOperations; ++i) {
    callers.emplace_back([&] { EXPECT_OK(Ask("ops", Fence())); });
  }
  EXPECT_TRUE(Eventually([&] { return running == server::Core::kMaxShardOperations; }));
  EXPECT_THAT(Ask("ops", Fence()), FailsWith(StatusCode::kResourceExhausted, "kv shards operations"));
  end = true;
  for (std::thread& caller : callers) caller.join();
  // The last call may still be ending.
  EXPECT_TRUE(Eventually([&] { return Ask("ops", Fence()).ok(); }));
}

/// Collects what is logged while it lives.
class Log {
 public:
  Log() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string Text() const { return out_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream out_;
};

TEST_F(OperateShardsTest, TheLogHasWhoFromWhereWhatAndTheResult) {
  const Log log;
  Serve([](const ShardEvents&) { return absl::StatusOr<Json>(absl::UnavailableError("A does not answer")); });
  const Json move = {{"command", "move"}, {"first", 0U}, {"last", 3U}, {"mod", true}, {"to", "C,D"}};
  EXPECT_FALSE(Ask("ops", move).ok());
  EXPECT_FALSE(Ask("owner", Fence()).ok());
  EXPECT_FALSE(Ask("ops", {{"command", "set"}, {"map", std::string(9'000, '[')}}).ok());
  served_.reset();
  const std::string text = log.Text();
  const std::string what = R"("what":"move first=0 last=3 mod=true to=C,D",)";
  const std::string who = R"("dataset":"","backend":"","caller":"ops","peer":"ipv4:127.0.0.1:)";
  EXPECT_THAT(text, HasSubstr(R"({"call":"OperateShards","begins":true,)" + what + who));
  EXPECT_THAT(text, ::testing::ContainsRegex(R"(\{"call":"OperateShards","code":"UNAVAILABLE","ms":[0-9]+,)" +
                                             what + who));
  EXPECT_THAT(text, HasSubstr(R"("message":"A does not answer")"));
  EXPECT_THAT(text,
              ::testing::ContainsRegex(R"("code":"PERMISSION_DENIED","ms":[0-9]+,"what":"fence host=A",)"
                                       R"("dataset":"","backend":"","caller":"owner")"));
  EXPECT_THAT(text, HasSubstr("\"what\":\"set map=(9000 bytes)\"")) << "the map itself is in the history";
  EXPECT_THAT(text, Not(HasSubstr("[[[")));
}

TEST_F(OperateShardsTest, NoLineOfAnOperatorIsLeftOutOfTheLog) {
  const Log log;
  Serve(&Nothing);
  const auto ops = ClientOf("ops");
  const auto count = [&](const std::string& text) {
    const std::string all = log.Text();
    size_t found = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  };
  // Somebody else's failures have taken the lines of this second.
  const auto owner = ClientOf("owner");
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(owner->Operate(Fence(), {}).ok());
  for (int i = 0; i < 100; ++i) ASSERT_OK(ops->Operate(Fence(), {}));
  served_.reset();
  EXPECT_EQ(count(R"("begins":true)"), 100u);
  EXPECT_EQ(count(R"({"call":"OperateShards","code":"OK")"), 100u);
}

/// A server from before there was OperateShards.
class OlderServer final : public v1::KVStore::Service {
 public:
  OlderServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::GetServerResponse* response) override {
    response->set_instance("an older server!");
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(OlderShards, AnOlderServerIsNamedWithWhatToDo) {
  const OlderServer older;
  client::Client client(client::Caller::Open(older.address(), {}).value());
  const absl::Status status = client.Operate(Fence(), {}).status();
  EXPECT_THAT(status, FailsWith(StatusCode::kUnimplemented, "does not operate shards: update it"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--config"));
}

// An older client sends no OperateShards; what it has, GetShardMap and ListShardMaps, is in
// shard_maps_test.cc.

}  // namespace
}  // namespace kvstore::testing
