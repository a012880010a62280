#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/hostile/http_fixture.h"
#include "tests/server/resp/resp_client.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"

/// How many connections of the Redis protocol one caller, or strangers, can take from others.
namespace kvstore::testing {
namespace {

using ::testing::StartsWith;

/// A server that has at most 200 connections of the Redis protocol, 100 of one caller.
class HostileRespTest : public HostileHttpTest {
 protected:
  using Clients = std::vector<std::unique_ptr<RespClient>>;

  void SetUp() override {
    address_ = "127.0.0.1:" + std::to_string(FreePort());
    Serve({{"resp", address_}}, /*descriptors=*/"400");
  }
  std::unique_ptr<RespClient> Dial() const { return std::make_unique<RespClient>(address_); }
  /// Dials so many connections, and sends `first` over each, if it is not empty.
  Clients Dial(int count, const std::string& first = "") const {
    Clients clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(Dial());
      EXPECT_EQ(first.empty() ? "OK" : clients.back()->Do(first), "OK") << i;
    }
    return clients;
  }

  std::string address_;
};

TEST_F(HostileRespTest, OneCallerLeavesConnectionsToOthers) {
  Clients greedy = Dial(100, "AUTH alice");
  const auto more = Dial();
  EXPECT_THAT(more->Do("AUTH alice"), StartsWith("-ERR max number of clients reached: "));
  EXPECT_THAT(more->Do("HELLO 3 AUTH alice alice"), StartsWith("-ERR max number of clients reached: "));
  EXPECT_EQ(more->Do("PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(greedy.front()->Do("PING"), "PONG") << "nothing is taken from who has it";
  // Others have theirs, also over the same connection, and a connection counts as that of its last caller.
  EXPECT_EQ(more->Do("AUTH bob"), "OK");
  Clients others = Dial(99, "AUTH bob");
  EXPECT_EQ(others.front()->Do("SET bob:k v"), "OK");
  EXPECT_THAT(greedy.front()->Do("AUTH bob"), StartsWith("-ERR max number of clients reached: "));
  others.pop_back();
  EXPECT_TRUE(Eventually([&] { return greedy.front()->Do("AUTH bob") == "OK"; }));
  EXPECT_EQ(Dial()->Do("AUTH alice"), "OK");
}

TEST_F(HostileRespTest, ConnectionsOfStrangersMakeRoomForCallers) {
  const auto caller = Dial();
  EXPECT_EQ(caller->Do("AUTH alice"), "OK");
  const Clients strangers = Dial(250);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Dial()->Do("AUTH bob"), "OK");
  EXPECT_EQ(caller->Do("SET alice:k v"), "OK");
  EXPECT_TRUE(strangers.front()->IsClosed());
}

TEST_F(HostileRespTest, WhoFindsNoRoomIsTold) {
  const Clients alices = Dial(100, "AUTH alice");
  const Clients bobs = Dial(100, "AUTH bob");
  EXPECT_EQ(Dial()->Receive(), "-ERR max number of clients reached");
}

}  // namespace
}  // namespace kvstore::testing
