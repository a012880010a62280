#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cached/servers/memcached.h"
#include "backends/cached/servers/redis.h"
#include "tests/support/cache_server.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"

namespace kvstore::cached {
namespace {

using testing::CacheServer;
using ::testing::Values;
using Kind = Looked::Kind;

/// Tests of what both kinds of servers promise, on real ones.
class ServersTest : public ::testing::TestWithParam<CacheServer::Kind> {
 protected:
  std::unique_ptr<Server> Open(const std::string& address, std::string password = "") {
    const ServerOptions options{.address = address,
                                .timeout = std::chrono::milliseconds(2000),
                                .connections = 8,
                                .user = {},
                                .password = std::move(password)};
    return GetParam() == CacheServer::Kind::kMemcached ? OpenMemcached(options) : OpenRedis(options);
  }
  /// A part that servers of this kind have.
  char part() const { return GetParam() == CacheServer::Kind::kMemcached ? 'v' : 'd'; }
  Looked Look(const std::string& key, bool lease = true) {
    const Server::Key one{key, part()};
    auto looked = server_->Look({&one, 1}, lease);
    EXPECT_OK(looked);
    return looked.ok() ? looked->keys.at(0) : Looked{};
  }
  absl::Status Fill(const std::string& key, uint64_t lease, const std::string& value, uint32_t ttl_s = 60) {
    const Server::Filling filling{.key = {key, part()}, .lease = lease, .value = value};
    return server_->Fill({&filling, 1}, ttl_s);
  }

  CacheServer process_{GetParam()};
  std::unique_ptr<Server> server_ = Open(process_.address());
};

TEST_P(ServersTest, OneReaderGetsTheLeaseAndFills) {
  EXPECT_EQ(Look("k", /*lease=*/false).kind, Kind::kNothing);
  const Looked first = Look("k");
  ASSERT_EQ(first.kind, Kind::kLeased);
  EXPECT_EQ(Look("k").kind, Kind::kTaken);
  EXPECT_OK(Fill("k", first.lease + 1, "another's"));
  EXPECT_EQ(Look("k").kind, Kind::kTaken);
  const std::string value("bytes \0\r\n of any kind", 22);
  EXPECT_OK(Fill("k", first.lease, value));
  const Looked hit = Look("k");
  EXPECT_EQ(hit.kind, Kind::kHit);
  EXPECT_EQ(hit.value, value);
}

TEST_P(ServersTest, AnEmptyValueIsAValue) {
  EXPECT_OK(Fill("k", Look("k").lease, ""));
  EXPECT_EQ(Look("k").kind, Kind::kHit);
}

TEST_P(ServersTest, AReleasedLeaseIsForOthers) {
  const Looked first = Look("k");
  EXPECT_OK(server_->Release({"k", part()}, first.lease + 1));
  EXPECT_EQ(Look("k").kind, Kind::kTaken);
  EXPECT_OK(server_->Release({"k", part()}, first.lease));
  EXPECT_EQ(Look("k").kind, Kind::kLeased);
}

TEST_P(ServersTest, AMarkEndsValuesAndLeases) {
  EXPECT_OK(Fill("k", Look("k").lease, "old"));
  const Looked other = Look("l");
  ASSERT_EQ(other.kind, Kind::kLeased);
  EXPECT_OK(server_->Mark("k", 1));
  EXPECT_OK(server_->Mark("l", 1));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
  EXPECT_OK(Fill("l", other.lease, "old"));
  EXPECT_EQ(Look("l").kind, Kind::kMarked);
  EXPECT_OK(server_->Unmark("k", 1, 0));
  EXPECT_EQ(Look("k", /*lease=*/false).kind, Kind::kNothing);
  // Nor is the lease of before worth anything after the mark.
  EXPECT_OK(server_->Unmark("l", 1, 0));
  const Looked again = Look("l");
  EXPECT_EQ(again.kind, Kind::kLeased);
  EXPECT_OK(Fill("l", other.lease, "old"));
  EXPECT_EQ(Look("l").kind, Kind::kTaken);
}

TEST_P(ServersTest, EachWriterHasItsOwnMark) {
  EXPECT_OK(server_->Mark("k", 1));
  EXPECT_OK(server_->Mark("k", 2));
  EXPECT_OK(server_->Mark("k", 2));
  EXPECT_OK(server_->Unmark("k", 1, 0));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
  EXPECT_OK(server_->Unmark("k", 3, 0));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
  EXPECT_OK(server_->Unmark("k", 2, 0));
  EXPECT_EQ(Look("k").kind, Kind::kLeased);
}

TEST_P(ServersTest, AMarkGoesByItsVersionAndLeavesThoseOfOthers) {
  const auto alone = server_->Mark("k", 1);
  ASSERT_OK(alone);
  EXPECT_OK(server_->Unmark("k", 1, alone->version));
  EXPECT_EQ(Look("k", /*lease=*/false).kind, Kind::kNothing);
  const auto first = server_->Mark("k", 1);
  const auto second = server_->Mark("k", 2);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_OK(server_->Unmark("k", 1, first->version));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
  const auto third = server_->Mark("k", 3);
  ASSERT_OK(third);
  EXPECT_OK(server_->Unmark("k", 3, third->version));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
  EXPECT_OK(server_->Unmark("k", 2, second->version));
  EXPECT_EQ(Look("k").kind, Kind::kLeased);
}

TEST_P(ServersTest, AMarkThatIsGoneTakesTheValueWithIt) {
  EXPECT_OK(Fill("k", Look("k").lease, "filled meanwhile"));
  EXPECT_OK(server_->Unmark("k", 1, 0));
  EXPECT_EQ(Look("k", /*lease=*/false).kind, Kind::kNothing);
  EXPECT_OK(server_->Unmark("k", 1, 0));
}

TEST_P(ServersTest, ForgetsValuesButNoMarks) {
  EXPECT_OK(Fill("k", Look("k").lease, "wrong"));
  EXPECT_OK(server_->Forget("k"));
  EXPECT_EQ(Look("k", /*lease=*/false).kind, Kind::kNothing);
  EXPECT_OK(server_->Mark("k", 1));
  EXPECT_OK(server_->Forget("k"));
  EXPECT_EQ(Look("k").kind, Kind::kMarked);
}

TEST_P(ServersTest, ManyWritersLoseNoMark) {
  constexpr uint64_t kWriters = 8;
  std::vector<std::thread> threads;
  for (uint64_t writer = 1; writer <= kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 50; ++i) {
        const auto marked = server_->Mark("k", writer);
        ASSERT_OK(marked);
        EXPECT_EQ(Look("k").kind, Kind::kMarked);
        EXPECT_OK(server_->Unmark("k", writer, marked->version));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Look("k").kind, Kind::kLeased);
}

TEST_P(ServersTest, LooksAtManyKeysAtOnce) {
  EXPECT_OK(Fill("b", Look("b").lease, "2"));
  EXPECT_OK(server_->Mark("c", 1));
  const std::vector<Server::Key> keys = {{"a", part()}, {"b", part()}, {"c", part()}, {"a", part()}};
  const auto looked = server_->Look(keys, /*lease=*/true);
  ASSERT_OK(looked);
  ASSERT_EQ(looked->keys.size(), 4U);
  EXPECT_EQ(looked->keys[0].kind, Kind::kLeased);
  EXPECT_EQ(looked->keys[1].value, "2");
  EXPECT_EQ(looked->keys[2].kind, Kind::kMarked);
  EXPECT_EQ(looked->keys[3].kind, Kind::kTaken);
  EXPECT_EQ(looked->guard, std::nullopt);
}

/// Replaces the guard by a text.
std::optional<std::string> Put(Server& server, const std::string& text) {
  std::optional<std::string> before;
  EXPECT_EQ(server
                .ChangeGuard([&](const std::optional<std::string>& read) {
                  before = read;
                  return std::optional<std::string>(text);
                })
                .value_or(false),
            true);
  return before;
}

TEST_P(ServersTest, TheGuardIsReplacedIfNobodyElseHasReplacedIt) {
  EXPECT_EQ(*server_->ReadGuard(), std::nullopt);
  EXPECT_EQ(Put(*server_, "first"), std::nullopt);
  EXPECT_EQ(*server_->ReadGuard(), "first");
  const auto other = Open(process_.address());
  const auto late = server_->ChangeGuard([&](const std::optional<std::string>& read) {
    EXPECT_EQ(read, "first");
    Put(*other, "second");
    return std::optional<std::string>("third");
  });
  EXPECT_EQ(late.value_or(true), false);
  EXPECT_EQ(*server_->ReadGuard(), "second");
  const auto nothing = server_->ChangeGuard([](const auto&) { return std::optional<std::string>(); });
  EXPECT_EQ(nothing.value_or(false), true);
  const auto marked = server_->Mark("k", 1);
  ASSERT_OK(marked);
  EXPECT_EQ(marked->guard, "second");
  const Server::Key key{"k", part()};
  EXPECT_EQ(server_->Look({&key, 1}, true)->guard, "second");
}

TEST_P(ServersTest, ARestartedServerHasNoGuard) {
  Put(*server_, "of before");
  process_.Stop();
  process_.Start();
  // The connection of before is found to be closed, and replaced.
  const auto read = server_->ReadGuard();
  ASSERT_OK(read);
  EXPECT_EQ(*read, std::nullopt);
}

TEST_P(ServersTest, AGuardIsNotReplacedInAnotherRunOfTheServer) {
  // The numbers of what is stored begin anew in each run, so that they tell nothing.
  Put(*server_, "of before");
  const auto changed = server_->ChangeGuard([&](const std::optional<std::string>& read) {
    if (read != "of before") return std::optional<std::string>();
    process_.Stop();
    process_.Start();
    Put(*Open(process_.address()), "of this run");
    return std::optional<std::string>("of before, trusted");
  });
  EXPECT_TRUE(!changed.ok() || *changed);
  EXPECT_EQ(*server_->ReadGuard(), "of this run");
}

TEST_P(ServersTest, ALargeValueIsNotKept) {
  const Looked looked = Look("k");
  const std::string value(size_t{3} << 20, 'x');
  EXPECT_OK(Fill("k", looked.lease, value));
  const Looked after = Look("k");
  EXPECT_TRUE(after.kind == Kind::kLeased || after.value == value);
}

TEST_P(ServersTest, ADeadServerIsUnavailable) {
  process_.Stop();
  const Server::Key key{"k", part()};
  EXPECT_THAT(server_->Look({&key, 1}, true).status(),
              testing::FailsWith(absl::StatusCode::kUnavailable, process_.address()));
  EXPECT_THAT(server_->Mark("k", 1).status(), testing::FailsWith(absl::StatusCode::kUnavailable, ""));
  process_.Start();
  EXPECT_OK(server_->Mark("k", 1));
}

TEST_P(ServersTest, AHangingServerIsUnavailable) {
  EXPECT_OK(server_->Mark("k", 1));
  process_.Pause();
  EXPECT_THAT(server_->Mark("k", 2).status(), testing::FailsWith(absl::StatusCode::kUnavailable, ""));
  process_.Continue();
  EXPECT_OK(server_->Mark("k", 2));
}

/// Answers whatever it is sent with the same bytes.
class Parrot {
 public:
  explicit Parrot(const std::string& answer) : Parrot(answer, answer) {}
  /// first   the answer to what comes first on a connection.
  /// slowly  sends long answers byte by byte.
  Parrot(std::string first, std::string answer, bool slowly = false)
      : first_(std::move(first)), answer_(std::move(answer)), slowly_(slowly) {
    const sockaddr_in address = testing::Loopback(port_);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    thread_ = std::thread([this] {
      for (int client = 0; (client = ::accept(listener_, nullptr, nullptr)) >= 0; ::close(client)) {
        client_ = client;
        ++connections_;
        std::array<char, 4096> said{};
        const std::string* next = &first_;
        while (::read(client, said.data(), said.size()) > 0) {
          if (!Say(client, *next)) break;
          next = &answer_;
        }
      }
    });
  }
  ~Parrot() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// How many clients have connected.
  int connections() const { return connections_; }
  /// Says something to the client that was answered last, and has not closed its connection. Returns when it
  /// has arrived.
  void SayMore(std::string_view unasked) const {
    EXPECT_TRUE(Say(client_, unasked));
    // The queue holds the bytes that the other side's system has not acknowledged.
    EXPECT_TRUE(testing::Eventually([this] {
      int queued = 0;
      return ::ioctl(client_, SIOCOUTQ, &queued) == 0 && queued == 0;
    }));
  }

 private:
  bool Say(int client, std::string_view answer) const {
    const size_t piece = slowly_ && answer.size() > 100 ? 1 : answer.size();
    for (; !answer.empty(); answer.remove_prefix(piece)) {
      if (::send(client, answer.data(), piece, MSG_NOSIGNAL) < 0) return false;
      if (piece == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  const std::string first_;
  const std::string answer_;
  const bool slowly_;
  const uint16_t port_ = testing::FreePort();
  int listener_ = -1;
  std::atomic<int> client_{-1};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

TEST_P(ServersTest, AServerThatAnswersNonsenseIsUnavailable) {
  for (const char* answer :
       {"HELLO\r\n", "VA 99999999999\r\n", "VA x\r\n", "VA 3 c1 f1\r\nabcde\r\n", "EN\r\nEN\r\nEN\r\nEN\r\n",
        "*-7\r\n", "*2\r\n:1\r\n:2\r\n", "$-5\r\n", "+OK\r\n", "\n"}) {
    Parrot parrot(answer);
    const auto server = Open(parrot.address());
    const Server::Key key{"k", part()};
    EXPECT_THAT(server->Look({&key, 1}, true).status(),
                testing::FailsWith(absl::StatusCode::kUnavailable, ""))
        << answer;
    EXPECT_THAT(server->Mark("k", 1).status(), testing::FailsWith(absl::StatusCode::kUnavailable, ""))
        << answer;
  }
}

TEST_P(ServersTest, ASecondAnswerIsNotTakenForThatOfTheNextRequest) {
  const bool memcached = GetParam() == CacheServer::Kind::kMemcached;
  const auto guard = [&](const std::string& text) {
    return memcached ? "VA 1 c1 f1\r\n" + text + "\r\n" : "$5\r\nabc " + text + "\r\n";
  };
  Parrot parrot(memcached ? guard("1") : "$10\r\nrun_id:abc\r\n", guard("1"));
  const auto server = Open(parrot.address());
  for (int connection = 1; connection <= 3; ++connection) {
    for (int i = 0; i < 2; ++i) {
      const auto read = server->ReadGuard();
      ASSERT_OK(read);
      EXPECT_EQ(*read, "1") << "the answer that nobody had asked for";
      EXPECT_EQ(parrot.connections(), connection) << "an idle connection is to be used again";
    }
    parrot.SayMore(guard("2"));
  }
}

/// A server of Redis that is one until it runs a script.
TEST(RedisTest, ScriptsThatAnswerNonsenseAreRefused) {
  for (const char* answer : {"$10\r\nrun_id:abc\r\n", "*1\r\n$1\r\nX\r\n", "*2\r\n$1\r\nX\r\n$0\r\n\r\n"}) {
    Parrot parrot(std::string("$10\r\nrun_id:abc\r\n") + answer);
    const auto server = OpenRedis({.address = parrot.address()});
    const Server::Key key{"k", 'd'};
    EXPECT_THAT(server->Look({&key, 1}, true).status(),
                testing::FailsWith(absl::StatusCode::kUnavailable, ""))
        << answer;
  }
}

/// An answer of a Redis server that announces too much is refused before memory is taken for it, and so is
/// one that has no end.
TEST(RedisTest, AnswersWithoutBoundsAreRefused) {
  const std::string greeting = "$10\r\nrun_id:abc\r\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"*2147483647\r\n", "2147483647 parts, and at most 2"},
      {"*3\r\n", "3 parts, and at most 2"},
      {"*2\r\n*1\r\n", "a list in a list"},
      {"*2\r\n$536870912\r\n", "536870912 bytes, and at most 1048576"},
      {"*2\r\n$1\r\nN\r\n$1048577\r\n", "1048577 bytes, and at most 1048576"},
      {"+" + std::string(size_t{1} << 20, 'x'), "which is no answer of Redis"},
      {"-ERR " + std::string(1000, 'x') + "\r\n", "refuses: ERR xxx"},
      {"*2\r\n$1\r\nN\r\n$0\r\n\r\n" + std::string(size_t{1} << 20, ':'), "more than it was asked"},
  };
  for (const auto& [answer, error] : cases) {
    Parrot parrot(greeting, answer);
    const auto server = OpenRedis({.address = parrot.address(), .timeout = std::chrono::seconds(60)});
    const Server::Key key{"k", 'd'};
    EXPECT_THAT(server->Look({&key, 1}, true).status(),
                testing::FailsWith(absl::StatusCode::kUnavailable, error))
        << answer.substr(0, 40);
  }
}

/// The time is that of the whole answer, however often some of it arrives.
TEST(RedisTest, AnAnswerThatComesByteByByteEndsInTime) {
  Parrot parrot("$10\r\nrun_id:abc\r\n", "$1000\r\n" + std::string(1000, 'x'), /*slowly=*/true);
  const auto server = OpenRedis({.address = parrot.address(), .timeout = std::chrono::milliseconds(200)});
  EXPECT_THAT(server->Mark("k", 1).status(),
              testing::FailsWith(absl::StatusCode::kUnavailable, "does not answer in time"));
}

INSTANTIATE_TEST_SUITE_P(Memcached, ServersTest, Values(CacheServer::Kind::kMemcached));
INSTANTIATE_TEST_SUITE_P(Redis, ServersTest, Values(CacheServer::Kind::kRedis));

TEST(RedisTest, WhatARestartBringsBackIsNotTrusted) {
  CacheServer process(CacheServer::Kind::kRedis, {"--appendonly", "yes", "--appendfsync", "always"});
  const auto server = OpenRedis({.address = process.address()});
  Put(*server, "of before");
  const Server::Key key{"k", 'd'};
  const auto looked = server->Look({&key, 1}, true);
  ASSERT_OK(looked);
  const Server::Filling filling{.key = key, .lease = looked->keys[0].lease, .value = "old"};
  EXPECT_OK(server->Fill({&filling, 1}, 600));
  process.Stop();
  process.Start();
  const auto after = server->Look({&key, 1}, true);
  ASSERT_OK(after);
  EXPECT_EQ(after->keys[0].value, "old") << "the server was to bring it back";
  EXPECT_EQ(after->guard, std::nullopt);
}

TEST(RedisTest, LogsIn) {
  CacheServer process(CacheServer::Kind::kRedis, {"--requirepass", "secret"});
  EXPECT_THAT(OpenRedis({.address = process.address()})->Mark("k", 1).status(),
              testing::FailsWith(absl::StatusCode::kUnavailable, "NOAUTH"));
  EXPECT_OK(OpenRedis({.address = process.address(), .password = "secret"})->Mark("k", 1));
  EXPECT_THAT(OpenRedis({.address = process.address(), .password = "wrong"})->Mark("k", 1).status(),
              testing::FailsWith(absl::StatusCode::kUnavailable, "WRONGPASS"));
}

TEST(RedisTest, PartsHaveValuesOfTheirOwnAndAreMarkedTogether) {
  CacheServer process(CacheServer::Kind::kRedis);
  const auto server = OpenRedis({.address = process.address()});
  const std::vector<Server::Key> keys = {{"k", 'a'}, {"k", 'd'}, {"k", 'c'}};
  auto looked = server->Look(keys, true);
  ASSERT_OK(looked);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string value(1, keys[i].part);
    const Server::Filling filling{.key = keys[i], .lease = looked->keys[i].lease, .value = value};
    EXPECT_OK(server->Fill({&filling, 1}, 60));
  }
  looked = server->Look(keys, true);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(looked->keys[i].value, std::string(1, keys[i].part));
  EXPECT_OK(server->Mark("k", 1));
  looked = server->Look(keys, true);
  for (const Looked& one : looked->keys) EXPECT_EQ(one.kind, Kind::kMarked);
  EXPECT_OK(server->Unmark("k", 1, 0));
  looked = server->Look(keys, false);
  for (const Looked& one : looked->keys) EXPECT_EQ(one.kind, Kind::kNothing);
}

}  // namespace
}  // namespace kvstore::cached
