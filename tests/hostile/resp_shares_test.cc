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

TEST_F(HostileRespTest, CommandsForWhichThereIsNoRoomLeaveNothingBehind) {
  // The server does not cut off a client that it has room for before all have asked.
  Serve({{"resp", address_}, {"limits", {{"stall_ms", 10'000}, {"max_bytes", 64 * kMiB}}}},
        /*descriptors=*/"400");
  // Each client sends 1.5 MB of a command whose end never comes. For the places of its words the server needs
  // four times as much.
  std::string half = "*300000\r\n";
  for (int i = 0; i < 250'000; ++i) half += "$0\r\n\r\n";
  const Clients clients = Dial(90, "AUTH alice");
  size_t refused = 0;
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i]->Send(half);
    if (i % 10 == 9) ExpectServes();
  }
  for (const auto& client : clients) {
    // Those that are kept are cut off when nothing more comes.
    if (client->Receive() != RespClient::kClosed) ++refused;
  }
  EXPECT_GT(refused, 70u);
  ExpectLittleMemory(96 * kMiB);
}

TEST_F(HostileRespTest, LargeAnswersOfShortNamesTakeLittle) {
  const auto writer = Dial();
  EXPECT_EQ(writer->Do("AUTH alice"), "OK");
  // In memory such a row takes five times as much as its names.
  for (int part = 0; part < 10; ++part) {
    std::vector<std::string> put = {"HSET", "alice:row"};
    for (int i = 0; i < 9'000; ++i) {
      put.push_back("a name of 26 bytes " + std::to_string(1'000'000 + part * 9'000 + i));
      put.emplace_back();
    }
    EXPECT_EQ(writer->Do(put), "(9000)");
  }
  const uint64_t seeded = MostBytes();
  const Clients clients = Dial(90, "AUTH alice");
  for (const auto& client : clients) client->Send(RespClient::Encode("HGETALL alice:row"));
  ExpectServes();
  int answered = 0;
  for (const auto& client : clients) {
    const std::string answer = client->Receive();
    // On a busy machine one client reads for so long that others have taken nothing for stall_ms.
    const bool late = answered > 0 && answer == RespClient::kClosed;
    EXPECT_TRUE(late || answer.size() > 1'000'000 || answer.starts_with("-BUSY ")) << answer.substr(0, 100);
    if (answer.size() > 1'000'000) ++answered;
  }
  EXPECT_GT(answered, 0);
  // The share of a caller and what is in progress: 4 MiB for each worker.
  ExpectGrownBy((32 + 32 * 4) * kMiB, seeded);
}

TEST_F(HostileRespTest, AnswersThatNobodyTakesAreCountedAndEndTheirConnections) {
  const auto writer = Dial();
  EXPECT_EQ(writer->Do("AUTH alice"), "OK");
  EXPECT_EQ(writer->Do({"SET", "alice:k", std::string(4 * kMiB, 'v')}), "OK");
  const Clients clients = Dial(5, "AUTH alice");
  for (const auto& client : clients) client->Send(RespClient::Encode("GET alice:k"));
  // The system would take all of an answer, as if the client had.
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_resp_cut_total") == 5; }));
}

TEST_F(HostileRespTest, ReadsOfManyLargeValuesTakeLittle) {
  const auto writer = Dial();
  EXPECT_EQ(writer->Do("AUTH alice"), "OK");
  std::vector<std::string> get = {"MGET"};
  for (int i = 0; i < 12; ++i) {
    get.push_back("alice:" + std::to_string(i));
    EXPECT_EQ(writer->Do({"SET", get.back(), std::string(4 * kMiB, 'v')}), "OK");
  }
  const uint64_t seeded = MostBytes();
  // The answers would be too large, which is known once a part of the values was read.
  const Clients clients = Dial(60, "AUTH alice");
  for (const auto& client : clients) client->Send(RespClient::Encode(get));
  ExpectServes();
  for (const auto& client : clients) {
    const std::string answer = client->Receive();
    EXPECT_TRUE(answer.starts_with("-ERR ") || answer.starts_with("-BUSY ")) << answer.substr(0, 100);
  }
  // The share of a caller, and for each worker what it reads at once, of which the last value may be large.
  ExpectGrownBy((32 + 32 * 8) * kMiB, seeded);
}

}  // namespace
}  // namespace kvstore::testing
