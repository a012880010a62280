#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/resp/resp_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/temp_dir.h"

/// How a connection deals with pipelines, with halves of commands, with clients that are slow, die or mean
/// harm, and with the end of the server.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RespConnectionTest : public RespTest {
 protected:
  double Metric(const std::string& name) const { return served_->Metric(name); }
  bool HasConnections(double count) {
    return Eventually([&] { return Metric("kvstore_resp_connections") == count; });
  }
};

// ---- pipelines ----

TEST_F(RespConnectionTest, APipelineIsAnsweredInOrder) {
  std::string pipeline;
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    pipeline += RespClient::Encode("SET rows:k" + n + " " + n);
    expected.emplace_back("OK");
    pipeline += RespClient::Encode("GET rows:k" + n);
    expected.push_back("\"" + n + "\"");
    pipeline += RespClient::Encode("XADD rows:s:c " + std::to_string(i + 1) + " v x");
    expected.push_back("\"" + std::to_string(i + 1) + "-0\"");
    pipeline += RespClient::Encode("XLEN rows:s:c");
    expected.push_back("(" + std::to_string(i + 1) + ")");
    pipeline += RespClient::Encode("ZADD links:1 1 " + n);
    expected.emplace_back("(1)");
    pipeline += "PING\r\n";
    expected.emplace_back("PONG");
    pipeline += RespClient::Encode("SCAN 0 MATCH nowhere:*");
    expected.emplace_back(R"(["0", []])");
    pipeline += RespClient::Encode("NONSENSE");
    expected.emplace_back(
        "-ERR unknown command 'NONSENSE'; docs/redis.md and COMMAND list those that there are");
  }
  std::thread sender([&] { client_->Send(pipeline); });
  for (const std::string& answer : expected) ASSERT_EQ(client_->Receive(), answer);
  sender.join();
}

TEST_F(RespConnectionTest, APipelineOfAHundredThousandLosesNothing) {
  constexpr int kPuts = 100'000;
  std::string pipeline;
  for (int i = 1; i <= kPuts; ++i) {
    pipeline +=
        RespClient::Encode("XADD rows:r" + std::to_string(i % 100) + ":c " + std::to_string(i) + " v x");
  }
  std::thread sender([&] { client_->Send(pipeline); });
  for (int i = 1; i <= kPuts; ++i) ASSERT_EQ(client_->Receive(), "\"" + std::to_string(i) + "-0\"");
  sender.join();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Do("XLEN rows:r" + std::to_string(i) + ":c"), "(" + std::to_string(kPuts / 100) + ")");
  }
}

TEST_F(RespConnectionTest, HalvesOfCommandsWaitForTheirRest) {
  const std::string command = RespClient::Encode({"HSET", "rows:r", "f", "a\r\nb"});
  for (size_t half = 1; half < command.size(); ++half) {
    ASSERT_TRUE(client_->Send(command.substr(0, half)));
    // Whatever has arrived by now, the answer comes when the rest has.
    EXPECT_EQ(RespClient(address()).Do("PING"), "PONG");
    ASSERT_TRUE(client_->Send(command.substr(half)));
    EXPECT_EQ(client_->Receive(), half == 1 ? "(1)" : "(0)");
  }
}

TEST_F(RespConnectionTest, CommandsCanBeTyped) {
  client_->Send("\r\nset rows:k \"a\\x20b\"\r\nget rows:k\n");
  EXPECT_EQ(client_->Receive(), "OK");
  EXPECT_EQ(client_->Receive(), "\"a b\"");
}

TEST_F(RespConnectionTest, ManyClientsAtOnceGetTheirOwnAnswers) {
  constexpr int kClients = 16;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([this, c] {
      RespClient client(address());
      for (int i = 0; i < 100; ++i) {
        const std::string value = std::to_string(c) + "-" + std::to_string(i);
        // All of them put the same row, so that their puts come together.
        ASSERT_EQ(client.Do("HSET rows:shared f" + std::to_string(c) + " " + value), i == 0 ? "(1)" : "(0)");
        ASSERT_EQ(client.Do("HGET rows:shared f" + std::to_string(c)), "\"" + value + "\"");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do("HLEN rows:shared"), "(" + std::to_string(kClients) + ")");
}

TEST_F(RespConnectionTest, PutsOfManyClientsThatTheDiskMustKeepWaitTogether) {
  ASSERT_OK(served_->router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  const double before = Metric("kvstore_rocksdb_log_syncs_total");
  constexpr int kClients = 16;
  constexpr int kPuts = 50;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([this, c] {
      RespClient client(address());
      for (int i = 0; i < kPuts; ++i) {
        const std::string value = std::to_string(c) + "-" + std::to_string(i);
        ASSERT_EQ(client.Do("HSET safe:shared f" + std::to_string(c) + " " + value), i == 0 ? "(1)" : "(0)");
        // A put of another dataset, which nobody has, is in the same group.
        if (i % 10 == 0) {
          ASSERT_EQ(client.Do("HSET none:shared f 1").front(), '-');
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int c = 0; c < kClients; ++c) {
    EXPECT_EQ(Do("HGET safe:shared f" + std::to_string(c)),
              "\"" + std::to_string(c) + "-" + std::to_string(kPuts - 1) + "\"");
  }
  EXPECT_LT(Metric("kvstore_rocksdb_log_syncs_total") - before, kClients * kPuts);
}

TEST_F(RespConnectionTest, PutsOfARowThatAreMadeTogetherCountWhatEachAdds) {
  ASSERT_OK(served_->router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  for (const std::string row : {"rows:r", "safe:r"}) {
    EXPECT_EQ(Do("HSET " + row + " a 0"), "(1)");
    client_->Send(
        RespClient::Encode("HSET " + row + " a 1 b 1") + RespClient::Encode("HSET " + row + " b 2 c 2") +
        RespClient::Encode("HMSET " + row + " d 3") + RespClient::Encode("HSET " + row + " c 4 d 4") +
        RespClient::Encode("HSET " + row + " e 5 f 5 e 6"));
    EXPECT_EQ(client_->Receive(), "(1)");
    EXPECT_EQ(client_->Receive(), "(1)");
    EXPECT_EQ(client_->Receive(), "OK");
    EXPECT_EQ(client_->Receive(), "(0)");
    EXPECT_EQ(client_->Receive(), "(2)");
  }
}

TEST_F(RespConnectionTest, PutsThatTheDiskMustKeepAreAnsweredInOrder) {
  ASSERT_OK(served_->router().CreateDataset({.name = "safe", .durability = Durability::kMachine}));
  std::string pipeline;
  for (int i = 0; i < 300; ++i) {
    pipeline += RespClient::Encode("HSET safe:r" + std::to_string(i % 7) + " f " + std::to_string(i));
    pipeline += RespClient::Encode("HGET safe:r" + std::to_string(i % 7) + " f");
  }
  std::thread sender([&] { client_->Send(pipeline); });
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(client_->Receive(), i < 7 ? "(1)" : "(0)");
    ASSERT_EQ(client_->Receive(), "\"" + std::to_string(i) + "\"");
  }
  sender.join();
}

TEST_F(RespConnectionTest, EachCommandIsCountedAsTheCallThatItIs) {
  std::string pipeline;
  for (int i = 0; i < 5; ++i) pipeline += RespClient::Encode("HSET rows:r f " + std::to_string(i));
  client_->Send(pipeline);
  for (int i = 0; i < 5; ++i) client_->Receive();
  Do("HGET rows:r f");
  Do("HGET nowhere:r f");
  EXPECT_EQ(Metric(R"(kvstore_call_seconds_count{backend="rocksdb",door="resp",operation="PutRow"})"), 5);
  EXPECT_EQ(Metric(R"(kvstore_call_seconds_count{backend="rocksdb",door="resp",operation="GetRow"})"), 1);
  EXPECT_EQ(
      Metric(R"(kvstore_call_errors_total{backend="",code="NOT_FOUND",door="resp",operation="GetRow"})"), 1);
  EXPECT_EQ(Metric("kvstore_resp_commands_total"), 7);
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; })) << "the call that asks";
}

// ---- clients that die, or are slow ----

TEST_F(RespConnectionTest, AClientThatDiesLeavesWholeCommandsAndNothingElse) {
  for (int i = 0; i < 30; ++i) {
    RespClient client(address());
    std::string pipeline;
    for (int k = 1; k <= 500; ++k)
      pipeline += RespClient::Encode("XADD rows:r:c " + std::to_string(k) + " v x");
    client.Send(pipeline + "*3\r\n$4\r\nHSET\r\n$6\r\nrows:");
    if (i % 2 == 0) {
      client.Reset();
    } else {
      client.EndSending();
      EXPECT_TRUE(client.IsClosed());
    }
  }
  EXPECT_TRUE(HasConnections(1));
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; }));
  const std::string length = Do("XLEN rows:r:c");
  EXPECT_EQ(length, "(500)") << "the ends that were sent in order have left all of it";
  EXPECT_EQ(Do("EXISTS rows:"), "-ERR row: a key has 1 to 1024 bytes, this one has 0");
}

TEST_F(RespConnectionTest, AClientThatHasEndedGetsItsAnswers) {
  client_->Send(RespClient::Encode("SET rows:k v") + RespClient::Encode("SCAN 0 MATCH rows:*") +
                RespClient::Encode("GET rows:k"));
  client_->EndSending();
  EXPECT_EQ(client_->Receive(), "OK");
  EXPECT_EQ(client_->Receive(), R"(["0", ["rows:k"]])");
  EXPECT_EQ(client_->Receive(), "\"v\"");
  EXPECT_TRUE(client_->IsClosed());
}

TEST_F(RespConnectionTest, AnswersThatNobodyReadsAreFewAndEndTheConnection) {
  ServerOptions options = RespOptions();
  options.limits.stall_ms = 300;
  Serve(options);
  ASSERT_EQ(Do({"SET", "rows:large", std::string(1 << 20, 'v')}), "OK");
  RespClient slow(address());
  std::string pipeline;
  for (int i = 0; i < 2'000; ++i) pipeline += RespClient::Encode("GET rows:large");
  std::atomic<bool> sent{false};
  std::thread sender([&] {
    slow.Send(pipeline);
    sent = true;
  });
  // Only as many of the 2 GB of answers are made as the kernel takes on both sides, and a few more.
  double most = 0;
  EXPECT_TRUE(Eventually([&] {
    most = std::max(most, Metric("kvstore_bytes_in_flight"));
    return Metric("kvstore_resp_cut_total") == 1;
  }));
  EXPECT_LT(most, 8 << 20);
  sender.join();
  EXPECT_TRUE(HasConnections(1));
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; }));
  EXPECT_EQ(Do("PING"), "PONG");
}

TEST_F(RespConnectionTest, ASlowClientThatReadsOnKeepsItsConnection) {
  ServerOptions options = RespOptions();
  options.limits.stall_ms = 2'000;
  Serve(options);
  ASSERT_EQ(Do({"SET", "rows:large", std::string(1 << 20, 'v')}), "OK");
  std::string pipeline;
  for (int i = 0; i < 40; ++i) pipeline += RespClient::Encode("GET rows:large");
  const std::jthread sender([&] { client_->Send(pipeline); });
  for (int i = 0; i < 40; ++i) ASSERT_EQ(client_->Receive().size(), (1u << 20) + 2);
  EXPECT_EQ(Metric("kvstore_resp_cut_total"), 0);
}

TEST_F(RespConnectionTest, CommandsBehindALargeAnswerThatWasSentAtOnceAreCarriedOut) {
  // More than may be unsent, and less than the system takes at once.
  ASSERT_EQ(Do({"SET", "rows:large", std::string(300'000, 'v')}), "OK");
  std::string pipeline;
  for (int i = 0; i < 5; ++i) pipeline += RespClient::Encode("GET rows:large") + RespClient::Encode("PING");
  client_->Send(pipeline);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(client_->Receive().size(), 300'002u);
    ASSERT_EQ(client_->Receive(), "PONG");
  }
}

TEST_F(RespConnectionTest, ACommandThatIsNeverCompletedEndsTheConnection) {
  ServerOptions options = RespOptions();
  options.limits.stall_ms = 200;
  Serve(options);
  ASSERT_TRUE(client_->Send("*2\r\n$3\r\nGET\r\n$10\r\nrow"));
  EXPECT_TRUE(client_->IsClosed());
}

TEST_F(RespConnectionTest, AnIdleConnectionIsClosedAfterItsTime) {
  ServerOptions options = RespOptions();
  options.limits.idle_ms = 2'000;
  Serve(options);
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_TRUE(client_->IsClosed());
  EXPECT_EQ(Metric("kvstore_resp_cut_total"), 0);
}

// ---- limits ----

TEST_F(RespConnectionTest, CallsBeyondTheLimitAreToldThatItIsBusy) {
  ServerOptions options = RespOptions();
  options.limits.max_bytes = 32 << 20;
  Serve(options);
  ASSERT_EQ(Do({"SET", "rows:large", std::string(4 << 20, 'v')}), "OK");
  // Clients that take nothing fill what may be in memory.
  std::vector<std::unique_ptr<RespClient>> slow;
  for (int i = 0; i < 16; ++i) {
    slow.push_back(std::make_unique<RespClient>(address()));
    std::string pipeline;
    for (int k = 0; k < 20; ++k) pipeline += RespClient::Encode("GET rows:large");
    slow.back()->Send(pipeline);
  }
  EXPECT_TRUE(Eventually([&] { return Do("GET rows:small").substr(0, 6) == "-BUSY "; }));
  EXPECT_EQ(Do("PING"), "PONG");
  slow.clear();
  EXPECT_TRUE(Eventually([&] { return Do("GET rows:small") == "nil"; }));
}

TEST_F(RespConnectionTest, CommandsThatArriveInPartCountAsInMemory) {
  ServerOptions options = RespOptions();
  options.limits.max_bytes = 32 << 20;
  Serve(options);
  std::vector<std::unique_ptr<RespClient>> halves;
  std::atomic<int> refused{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 16; ++i) {
    halves.push_back(std::make_unique<RespClient>(address()));
    halves.back()->Send("*3\r\n$3\r\nSET\r\n$6\r\nrows:k\r\n$8000000\r\n");
  }
  const std::string part(7'000'000, 'x');
  for (auto& half : halves) {
    readers.emplace_back([&] {
      half->Send(part);
      half->EndSending();
      if (half->Receive().substr(0, 6) == "-BUSY ") ++refused;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(refused, 0);
  EXPECT_TRUE(HasConnections(1));
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_bytes_in_flight") == 0; }));
  EXPECT_EQ(Do("SET rows:k v"), "OK");
}

TEST_F(RespConnectionTest, AValueThatIsALittleTooLargeIsToldSo) {
  EXPECT_THAT(Do({"SET", "rows:k", std::string((4 << 20) + 1, 'v')}), HasSubstr("-ERR value: "));
  EXPECT_EQ(Do("PING"), "PONG");
  client_->Send("*3\r\n$3\r\nSET\r\n$6\r\nrows:k\r\n$99999999\r\n");
  EXPECT_EQ(client_->Receive(), "-ERR Protocol error: invalid bulk length");
  EXPECT_TRUE(client_->IsClosed());
}

// ---- hostile bytes ----

TEST_F(RespConnectionTest, WhatIsNoCommandIsToldAndEndsTheConnection) {
  for (const char* bytes :
       {"*x\r\n", "*1\r\n:1\r\n", "*1\r\n*1\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n", "\"a\r\n"}) {
    RespClient client(address());
    client.Send("PING\r\n" + std::string(bytes) + "PING\r\n");
    EXPECT_EQ(client.Receive(), "PONG");
    EXPECT_THAT(client.Receive(), StartsWith("-ERR Protocol error: ")) << bytes;
    EXPECT_TRUE(client.IsClosed()) << bytes;
  }
}

TEST_F(RespConnectionTest, ARequestOfABrowserIsNotCarriedOut) {
  RespClient client(address());
  client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\nSET rows:k v\r\n");
  EXPECT_EQ(client.Receive(), RespClient::kClosed);
  EXPECT_EQ(Do("GET rows:k"), "nil");
}

TEST_F(RespConnectionTest, AnyBytesDoNoHarm) {
  Random random(Seed("RespConnectionTest.AnyBytesDoNoHarm"));
  const std::vector<std::string> parts = {
      "*1\r\n",      "*3\r\n",           "*-1\r\n",   "$3\r\n",          "$0\r\n",
      "GET\r\n",     "SET rows:k v\r\n", "rows:k ",   "HGETALL ",        "\r\n",
      "XRANGE ",     "SCAN 0\r\n",       "ZADD ",     "links:1 1 1\r\n", "\"",
      "\\x00",       "*2\r\n",           "MULTI\r\n", "KV.SCAN rows",    " LIMIT 1\r\n",
      "HELLO 3\r\n", "CLIENT ",          "COMMAND ",  "INFO\r\n",        "JSON.GET docs:1\r\n"};
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (uint64_t i = random.Below(40); i > 0; --i) {
      bytes += random.OneIn(10) ? random.HostileBytes(1, 20) : parts[random.Below(parts.size())];
    }
    RespClient client(address());
    client.Send(bytes);
    random.OneIn(2) ? client.EndSending() : client.Reset();
    if (random.OneIn(5)) {
      ASSERT_EQ(Do("PING"), "PONG");
    }
  }
  EXPECT_TRUE(HasConnections(1));
  EXPECT_TRUE(Eventually([&] { return Metric("kvstore_calls_in_flight") == 1; }));
}

// ---- the server's end ----

TEST_F(RespConnectionTest, AServerThatStopsClosesItsConnections) {
  EXPECT_EQ(Do("SET rows:k v"), "OK");
  RespClient idle(address());
  EXPECT_EQ(idle.Do("PING"), "PONG");
  served_->server().Drain();
  EXPECT_TRUE(client_->IsClosed());
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_THROW(RespClient late(address()), std::runtime_error);
}

TEST_F(RespConnectionTest, NoAcknowledgedPutIsLostWhenTheServerStops) {
  // Half of them put what the disk must keep, which takes another way.
  ASSERT_OK(served_->router().CreateDataset(
      {.name = "safe", .max_versions = 0, .durability = Durability::kMachine}));
  const auto dataset_of = [](int c) { return c % 2 == 0 ? "rows" : "safe"; };
  std::vector<std::thread> clients;
  std::vector<int> acknowledged(4, 0);
  std::atomic<int> started{0};
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      RespClient client(address());
      for (int i = 1;; ++i) {
        const std::string key = std::string(dataset_of(c)) + ":r" + std::to_string(c) + ":c ";
        if (client.Do("XADD " + key + std::to_string(i) + " v x").front() != '"') return;
        if (i == 10) ++started;
        acknowledged[static_cast<size_t>(c)] = i;
      }
    });
  }
  ASSERT_TRUE(Eventually([&] { return started == 4; }));
  served_->server().Drain();
  for (std::thread& client : clients) client.join();
  for (int c = 0; c < 4; ++c) {
    ReadOptions options{.versions = 1'000'000};
    const auto row = served_->router().GetRow(dataset_of(c), "r" + std::to_string(c), options);
    ASSERT_OK(row);
    EXPECT_GE(row->items[0].cells[0].timestamp, static_cast<uint64_t>(acknowledged[static_cast<size_t>(c)]));
  }
}

TEST_F(RespConnectionTest, AUnixSocketServes) {
  const TempDir dir;
  ServerOptions options = TestServerOptions();
  options.resp = "unix:" + (dir / "s").string();
  served_ = std::make_unique<Served>(options);
  EXPECT_EQ(served_->server().resp_address(), options.resp);
  options.listen = {"127.0.0.1:0"};
  EXPECT_THAT(Server::Start(served_->router(), options),
              FailsWith(absl::StatusCode::kUnavailable, "another server has it"));
}

}  // namespace
}  // namespace kvstore::testing
