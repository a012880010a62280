#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "backend_api/outcome.h"
#include "client/caller.h"
#include "client/client.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"
#include "wire/convert.h"

/// Commands of migrations over the network, to a fake Migrations that returns what it was asked.
namespace kvstore::testing {
namespace {

class Echo : public Migrations {
 public:
  absl::StatusOr<Json> Command(const Json& command) override {
    if (command.value("command", "") == "finish") return absl::FailedPreconditionError("possible now: start");
    return Json{{"heard", command}};
  }
};

TEST(MigrationsOverTheWire, CommandsAndRefusalsCome) {
  Echo echo;
  const Served served(TestServerOptions(), {.migrations = &echo});
  client::Client client(*client::Caller::Open(served.address(), {}));
  ASSERT_OK_AND_ASSIGN(const Json heard,
                       client.Command({{"command", "create"}, {"dataset", "events"}, {"share", 50u}}));
  EXPECT_EQ(heard["heard"]["dataset"], "events");
  EXPECT_EQ(heard["heard"]["share"], 50);
  ASSERT_OK_AND_ASSIGN(const Json list, client.Command({{"command", "list"}}));
  EXPECT_FALSE(list["heard"].contains("dataset"));
  EXPECT_THAT(client.Command({{"command", "finish"}, {"dataset", "events"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "possible now"));
  EXPECT_THAT(client.Command({{"command", "status"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "only a list"));
}

/// Loses the answer to the first put, and refuses the second because the dataset has migrated.
class MovesMeanwhile : public v1::KVStore::Service {
 public:
  grpc::Status GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                         v1::GetServerResponse* response) override {
    response->set_instance("one");
    return grpc::Status::OK;
  }
  grpc::Status PutRow(grpc::ServerContext* context, const v1::PutRowRequest*, v1::PutRowResponse*) override {
    if (++puts_ > 1) context->AddTrailingMetadata(wire::kOutcome, wire::kMoved);
    return {grpc::StatusCode::UNAVAILABLE, "put"};
  }

 private:
  std::atomic<int> puts_{0};
};

TEST(MovedOverTheWire, IsNotToldOfAWriteThatMayHaveHappened) {
  MovesMeanwhile service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  client::Client client(*client::Caller::Open("127.0.0.1:" + std::to_string(port), {}));
  const CellWrite cell{"c", "v", std::nullopt};
  // The outcome is in doubt: a router that retried it as refused would write it twice.
  const absl::Status first = client.PutRow("events", "r", {&cell, 1}, {}).status();
  EXPECT_TRUE(IsInDoubt(first)) << first;
  EXPECT_FALSE(IsMigrating(first)) << first;
  // Nothing was done.
  const absl::Status second = client.PutRow("events", "r", {&cell, 1}, {}).status();
  EXPECT_FALSE(IsInDoubt(second)) << second;
  EXPECT_TRUE(IsMigrating(second)) << second;
}

TEST(MigrationsOverTheWire, AServerWithoutThemSaysSo) {
  const Served served;
  client::Client client(*client::Caller::Open(served.address(), {}));
  EXPECT_THAT(client.Command({{"command", "list"}}), FailsWith(absl::StatusCode::kUnimplemented, ""));
}

}  // namespace
}  // namespace kvstore::testing
