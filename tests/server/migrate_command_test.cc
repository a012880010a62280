#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/migrations.h"
#include "base/mutex.h"
#include "client/verb_request.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "tests/server/server_fixture.h"

/// Commands of migrations over the wire, as messages of their own and as the JSON of older clients.
namespace kvstore::testing {
namespace {

/// Notes the commands that arrive.
class NotedMigrations : public Migrations {
 public:
  absl::StatusOr<Json> Command(const Json& command) override {
    const MutexLock lock(mutex_);
    commands_.push_back(command);
    return Json{{"phase", "noted"}};
  }
  std::vector<Json> Commands() const {
    const MutexLock lock(mutex_);
    return commands_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Json> commands_ ABSL_GUARDED_BY(mutex_);
};

class MigrateCommandTest : public ::testing::Test {
 protected:
  /// Sends the request, and returns the command that has arrived, or the name of the error.
  Json Send(const v1::MigrateRequest& request) {
    grpc::ClientContext context;
    v1::MigrateResponse response;
    const size_t before = migrations_.Commands().size();
    const grpc::Status status = Stub(served_.address())->Migrate(&context, request, &response);
    if (!status.ok()) return status.error_message();
    const std::vector<Json> commands = migrations_.Commands();
    EXPECT_EQ(commands.size(), before + 1);
    return commands.back();
  }

  NotedMigrations migrations_;
  Served served_{TestServerOptions(), {.migrations = &migrations_}};
};

TEST_F(MigrateCommandTest, EachVerbArrivesAsTheCommandThatItWas) {
  std::vector<Json> commands = {
      {{"command", "create"},
       {"dataset", "events"},
       {"target", "mysql"},
       {"engine", "innodb"},
       {"auto", true},
       {"threads", 8U},
       {"freeze_ms", 500U},
       {"units_per_s", 0U},
       {"bytes_per_s", 7U},
       {"share", 50U},
       {"max_read_us", 0U}},
      {{"command", "throttle"}, {"dataset", "events"}, {"units_per_s", 0U}, {"share", 9U}},
      {{"command", "resolve"}, {"dataset", "events"}, {"keep", "mysql"}},
      {{"command", "abandon"}, {"dataset", "events"}, {"gone", "mysql"}},
  };
  for (const char* plain : {"start", "pause", "resume", "verify", "cutover", "reverse", "rollback", "finish",
                            "cancel", "status"}) {
    commands.push_back({{"command", plain}, {"dataset", "events"}});
  }
  commands.push_back({{"command", "list"}});
  // A verb that is added has a line here, too.
  EXPECT_EQ(commands.size(),
            static_cast<size_t>(v1::MigrateRequest::descriptor()->FindOneofByName("verb")->field_count()));
  for (Json& command : commands) {
    command["who"] = "ann@ops1";
    if (command["command"] != "list") command["dry_run"] = true;
    SCOPED_TRACE(command.dump());
    v1::MigrateRequest request = client::MigrateRequestOf(command);
    EXPECT_NE(request.verb_case(), v1::MigrateRequest::VERB_NOT_SET);
    // To a server that knows no verbs, the request says the same.
    EXPECT_EQ(Json::parse(request.command()), command);
    request.clear_command();
    EXPECT_EQ(Send(request), command);
  }
}

TEST_F(MigrateCommandTest, ARequestOfAnOlderClientIsCarriedOut) {
  v1::MigrateRequest request;
  request.set_dataset("events");
  request.set_command(R"({"command":"status","dataset":"another"})");
  EXPECT_EQ(Send(request), Json({{"command", "status"}, {"dataset", "events"}}));
}

TEST_F(MigrateCommandTest, ACommandThatNoVerbIsGoesAsItIsToTheServer) {
  for (const Json& command :
       {Json{{"command", "teleport"}, {"dataset", "events"}},
        Json{{"command", "attempt"}, {"dataset", "events"}},
        Json{{"command", "start"}, {"dataset", "events"}, {"threads", 1U}},
        Json{{"command", "repair"}, {"dataset", "events"}, {"yes", true}},
        Json{{"command", "cutover"}, {"dataset", "events"}, {"accept_differences", true}},
        Json{{"command", "create"}, {"dataset", "events"}, {"threads", "four"}}}) {
    const v1::MigrateRequest request = client::MigrateRequestOf(command);
    EXPECT_EQ(request.verb_case(), v1::MigrateRequest::VERB_NOT_SET) << command;
    EXPECT_EQ(Send(request), command);
  }
}

TEST_F(MigrateCommandTest, ARequestThatSaysNothingToDoIsRefused) {
  v1::MigrateRequest request;
  request.set_dataset("events");
  EXPECT_EQ(Send(request), "verb: missing; the request says nothing to do");
}

TEST_F(MigrateCommandTest, OnlyAListIsAboutAllDatasets) {
  v1::MigrateRequest request;
  request.set_dataset("*");
  request.mutable_cancel();
  EXPECT_EQ(Send(request), "dataset: only a list may be about all datasets ('*')");
}

}  // namespace
}  // namespace kvstore::testing
