#include "coordination/zookeeper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "kvstore_api/call_scope.h"
#include "tests/support/eventually.h"
#include "tests/support/loopback.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::FreePort;
using testing::TcpProxy;
using testing::ZooKeeperServer;

/// Counts events, and waits for one.
class Events {
 public:
  std::function<void()> Callback() {
    return [this] {
      const MutexLock lock(mutex_);
      ++count_;
      changed_.notify_all();
    };
  }
  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }
  bool WaitBeyond(int count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (count_ <= count) {
      if (lock.WaitUntil(changed_, deadline)) break;
    }
    return count_ > count;
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(ZooKeeper, NoWaitIsLongerThanItsCallers) {
  ZooKeeperServer server;
  TcpProxy proxy(server.port());
  ZooKeeper zookeeper({.servers = proxy.address(), .session_timeout_ms = 600'000, .call_timeout_ms = 600'000},
                      nullptr);
  ASSERT_OK(zookeeper.Create("/there", "one"));
  const auto within = [&](auto call) {
    const CallScope scope(std::chrono::milliseconds(100));
    return call();
  };
  ASSERT_OK(zookeeper.Get("/there", false));
  // There is a connection, and no answer.
  proxy.Stall();
  const std::string why = "which is what was left of the call's time";
  EXPECT_THAT(within([&] { return zookeeper.Get("/there", false); }),
              FailsWith(absl::StatusCode::kUnavailable, "no answer within "));
  EXPECT_THAT(within([&] { return zookeeper.Set("/there", "two", -1); }),
              FailsWith(absl::StatusCode::kUnavailable, why));
  EXPECT_THAT(within([&] { return zookeeper.Change({{.path = "/there", .data = "three"}}); }),
              FailsWith(absl::StatusCode::kUnavailable, why));
  // There is none.
  server.Stop();
  proxy.Cut();
  EXPECT_TRUE(testing::Eventually([&] { return !zookeeper.connected(); }));
  const auto read = within([&] { return zookeeper.Get("/there", false); });
  EXPECT_THAT(read, FailsWith(absl::StatusCode::kUnavailable, "no connection within "));
  EXPECT_THAT(read, FailsWith(absl::StatusCode::kUnavailable, why));
}

TEST(ZooKeeper, WhatIgnoresTheDeadlineWaitsForItsTimeoutAlone) {
  const ZooKeeperServer server;
  TcpProxy proxy(server.port());
  ZooKeeper zookeeper({.servers = proxy.address(), .session_timeout_ms = 600'000, .call_timeout_ms = 2'000},
                      nullptr);
  ASSERT_OK(zookeeper.Create("/there", "one"));
  // Its caller has no time left at all.
  const CallScope scope(std::chrono::milliseconds(0));
  {
    const ZooKeeper::IgnoreDeadline ignore;
    EXPECT_OK(zookeeper.Get("/there", false));
    const ZooKeeper::IgnoreDeadline again;
    EXPECT_OK(zookeeper.Set("/there", "two", -1));
  }
  proxy.Stall();
  {
    const ZooKeeper::IgnoreDeadline ignore;
    EXPECT_THAT(zookeeper.Get("/there", false),
                FailsWith(absl::StatusCode::kUnavailable, "no answer within 2000 ms"));
  }
  EXPECT_THAT(zookeeper.Get("/there", false),
              FailsWith(absl::StatusCode::kUnavailable, "what was left of the call's time"));
}

TEST(ZooKeeper, NodesAreMadeReadAndChanged) {
  const ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  EXPECT_THAT(zookeeper.Get("/kvstore/shards/id", false),
              FailsWith(absl::StatusCode::kNotFound, "/kvstore/shards/id"));
  ASSERT_OK(zookeeper.Create("/kvstore/shards/id", "one"));
  EXPECT_THAT(zookeeper.Create("/kvstore/shards/id", "two"),
              FailsWith(absl::StatusCode::kAlreadyExists, "/kvstore/shards/id"));
  ASSERT_OK_AND_ASSIGN(const ZooKeeperNode node, zookeeper.Get("/kvstore/shards/id", false));
  EXPECT_EQ(node.data, "one");
  ASSERT_OK(zookeeper.Set("/kvstore/shards/id", std::string("t\0o", 3), node.version));
  EXPECT_EQ(zookeeper.Get("/kvstore/shards/id", false)->data, std::string("t\0o", 3));
  // The parents are empty.
  EXPECT_EQ(zookeeper.Get("/kvstore", false)->data, "");
}

TEST(ZooKeeper, TwoWritersCannotOverwriteEachOther) {
  const ZooKeeperServer server;
  ZooKeeper one({.servers = server.address()}, nullptr);
  ZooKeeper two({.servers = server.address()}, nullptr);
  ASSERT_OK(one.Create("/n", "0"));
  const int32_t version = one.Get("/n", false)->version;
  ASSERT_OK(two.Set("/n", "2", version));
  EXPECT_THAT(one.Set("/n", "1", version),
              FailsWith(absl::StatusCode::kFailedPrecondition, "changed by somebody else"));
  EXPECT_EQ(one.Get("/n", false)->data, "2");
}

TEST(ZooKeeper, AWatchTellsOfAChangeAndOfACreation) {
  const ZooKeeperServer server;
  Events events;
  ZooKeeper watcher({.servers = server.address()}, events.Callback());
  ZooKeeper writer({.servers = server.address()}, nullptr);
  EXPECT_FALSE(watcher.Get("/n", true).ok());
  int before = events.count();
  ASSERT_OK(writer.Create("/n", "1"));
  EXPECT_TRUE(events.WaitBeyond(before));
  ASSERT_OK_AND_ASSIGN(const ZooKeeperNode node, watcher.Get("/n", true));
  before = events.count();
  ASSERT_OK(writer.Set("/n", "2", node.version));
  EXPECT_TRUE(events.WaitBeyond(before));
  EXPECT_EQ(watcher.Get("/n", true)->data, "2");
}

TEST(ZooKeeper, AServerThatIsNotThereIsUnavailable) {
  ZooKeeper zookeeper({.servers = "127.0.0.1:" + std::to_string(FreePort()), .call_timeout_ms = 300},
                      nullptr);
  EXPECT_THAT(zookeeper.Get("/n", false),
              FailsWith(absl::StatusCode::kUnavailable, "no connection within 300 ms"));
  ZooKeeper nameless({.servers = "no such host:1", .call_timeout_ms = 300}, nullptr);
  EXPECT_THAT(nameless.Get("/n", false),
              FailsWith(absl::StatusCode::kUnavailable, "ZooKeeper at no such host:1"));
}

TEST(ZooKeeper, ASessionSurvivesAKilledServer) {
  ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  ASSERT_OK(zookeeper.Create("/n", "1"));
  server.Stop();
  EXPECT_THAT(zookeeper.Get("/n", false), FailsWith(absl::StatusCode::kUnavailable, server.address()));
  server.Start();
  EXPECT_EQ(zookeeper.Get("/n", false)->data, "1");
}

TEST(ZooKeeper, ASessionThatTriesInCallsIsGivenUpWhenACallFoundNoServer) {
  ZooKeeperServer server;
  const ZooKeeperOptions options{
      .servers = server.address(), .session_timeout_ms = 2000, .call_timeout_ms = 500};
  ZooKeeper zookeeper(options, nullptr, ZooKeeper::Away::kTriesInCalls);
  ASSERT_OK(zookeeper.Create("/a", "1"));
  ASSERT_OK(zookeeper.CreateEphemeral("/of-the-session", ""));
  server.Stop();
  // The first call may still find the connection, and lose it.
  EXPECT_TRUE(testing::Eventually([&] {
    const absl::Status status = zookeeper.Get("/a", false).status();
    EXPECT_TRUE(absl::IsUnavailable(status));
    return status.message().find("no connection within") != std::string::npos;
  }));
  server.Start();
  // Nobody calls, so nobody comes back, and the server ends the session.
  ZooKeeper other({.servers = server.address()}, nullptr);
  EXPECT_TRUE(
      testing::Eventually([&] { return absl::IsNotFound(other.Stat("/of-the-session", false).status()); }));
  ASSERT_OK(zookeeper.Get("/a", false).status());
}

TEST(ZooKeeper, AStateIsAnotherOneAfterEachChange) {
  const ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  EXPECT_THAT(zookeeper.Stat("/a", false), FailsWith(absl::StatusCode::kNotFound, "/a"));
  ASSERT_OK(zookeeper.Create("/a", "1"));
  ASSERT_OK_AND_ASSIGN(const ZooKeeperChange made, zookeeper.Stat("/a", false));
  EXPECT_EQ(zookeeper.Get("/a", false)->change, made);
  ASSERT_OK(zookeeper.Delete("/a"));
  ASSERT_OK(zookeeper.Create("/a", "1"));
  ASSERT_OK_AND_ASSIGN(const ZooKeeperChange again, zookeeper.Stat("/a", false));
  EXPECT_FALSE(again == made) << "its version is the same";
  ASSERT_OK(zookeeper.Set("/a", "2", -1));
  EXPECT_FALSE(*zookeeper.Stat("/a", false) == again);
}

TEST(ZooKeeper, ASessionThatHasExpiredIsRenewed) {
  const ZooKeeperServer server;
  TcpProxy proxy(server.port());
  Events events;
  ZooKeeper zookeeper({.servers = proxy.address(), .session_timeout_ms = 800}, events.Callback());
  ASSERT_OK(zookeeper.Create("/n", "1"));
  ASSERT_OK(zookeeper.Get("/n", true));
  proxy.Cut();
  while (server.Sessions() != 0) std::this_thread::yield();
  const int before = events.count();
  proxy.Mend();
  // It is told, since its watch is gone with the session.
  EXPECT_TRUE(events.WaitBeyond(before));
  EXPECT_TRUE(testing::Eventually([&] {
    const auto node = zookeeper.Get("/n", true);
    return node.ok() && node->data == "1" && server.Sessions() == 1;
  }));
}

TEST(ZooKeeper, NodesMadeByAUserAreTheirsToWrite) {
  const ZooKeeperServer server;
  ZooKeeper owner({.servers = server.address(), .auth = "operator:secret"}, nullptr);
  ZooKeeper other({.servers = server.address(), .auth = "operator:wrong"}, nullptr);
  ASSERT_OK(owner.Create("/n", "1"));
  ASSERT_OK_AND_ASSIGN(const ZooKeeperNode node, other.Get("/n", false));
  EXPECT_THAT(other.Set("/n", "2", node.version),
              FailsWith(absl::StatusCode::kPermissionDenied, "not allowed to write /n"));
  EXPECT_OK(owner.Set("/n", "2", node.version));
}

TEST(ZooKeeper, LargeNodesComeWhole) {
  const ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  const std::string large(ZooKeeper::kMaxNodeBytes, 'x');
  ASSERT_OK(zookeeper.Create("/n", large));
  EXPECT_TRUE(zookeeper.Get("/n", false)->data == large);
  EXPECT_THAT(zookeeper.Set("/n", large + "x", -1),
              FailsWith(absl::StatusCode::kInvalidArgument, "a node holds at most"));
}

}  // namespace
}  // namespace kvstore
