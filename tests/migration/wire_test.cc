#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/client.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"

/// Commands of migrations over the network: a made-up Migrations says what it was asked.
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
  const Served served(TestServerOptions(), &echo);
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

TEST(MigrationsOverTheWire, AServerWithoutThemSaysSo) {
  const Served served;
  client::Client client(*client::Caller::Open(served.address(), {}));
  EXPECT_THAT(client.Command({{"command", "list"}}), FailsWith(absl::StatusCode::kUnimplemented, ""));
}

}  // namespace
}  // namespace kvstore::testing
