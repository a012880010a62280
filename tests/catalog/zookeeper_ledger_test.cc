#include "catalog/zookeeper_ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "catalog/ledger_json.h"
#include "tests/catalog/ledger_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

/// A ledger in ZooKeeper, which processes lose their sessions to.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::TcpProxy;

class ZooKeeperLedgerTest : public ::testing::Test {
 protected:
  const std::string root_ =
      std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ZooKeeperLedgerTest, WhoLosesItsSessionLosesItsClaimsAndPublishesNothing) {
  TcpProxy proxy(Server().port());
  ZooKeeper paused({.servers = proxy.address(), .session_timeout_ms = 2'000, .call_timeout_ms = 3'000},
                   nullptr);
  ZooKeeper other(Options(Server().address()), nullptr);
  ZooKeeperLedger one(paused, root_);
  ZooKeeperLedger two(other, root_);
  ASSERT_OK(other.Create(root_ + "/map", "before"));
  const auto publish = [&](ZooKeeperLedger& ledger, const Held& hold, const std::string& text) {
    return ledger.Change(hold, {{.kind = ZooKeeperStep::Kind::kSet, .path = root_ + "/map", .data = text}});
  };
  const Operation open = Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)});
  ASSERT_OK_AND_ASSIGN(const Held first, one.Begin(open));
  ASSERT_OK_AND_ASSIGN(const Held lasting,
                       one.Begin(Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)})));
  EXPECT_OK(publish(one, first, "one"));
  proxy.Cut();
  EXPECT_TRUE(Eventually([&] { return two.List()->size() == 1; }));
  ASSERT_OK_AND_ASSIGN(const Held second, two.Begin(open));
  EXPECT_OK(publish(two, second, "two"));
  proxy.Mend();
  // The process that slept wakes up, and continues.
  absl::Status late;
  EXPECT_TRUE(Eventually([&] { return !absl::IsUnavailable(late = publish(one, first, "late")); }));
  EXPECT_THAT(late, FailsWith(absl::StatusCode::kAborted, "is not held any more"));
  EXPECT_EQ(other.Get(root_ + "/map", false)->data, "two");
  EXPECT_THAT(first.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(publish(one, lasting, "moved")) << "lasting ones outlive sessions";
  ASSERT_OK_AND_ASSIGN(const Held over,
                       two.Begin(Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)})));
  EXPECT_THAT(publish(one, lasting, "late"), FailsWith(absl::StatusCode::kAborted, "is not held any more"));
  EXPECT_OK(publish(two, over, "moved on"));
  EXPECT_THAT(one.Begin(open), FailsWith(kRefused, "'open'"));
}

TEST_F(ZooKeeperLedgerTest, AnEndThatFailedIsMadeUpFor) {
  TcpProxy proxy(Server().port());
  ZooKeeperLedger one({.servers = proxy.address(), .session_timeout_ms = 20'000, .call_timeout_ms = 3'000},
                      root_);
  ZooKeeperLedger two(Options(Server().address()), root_);
  ASSERT_OK_AND_ASSIGN(Held open, one.Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})));
  proxy.Cut();
  EXPECT_THAT(open.End(), FailsWith(absl::StatusCode::kUnavailable, ""));
  proxy.Mend();
  ASSERT_EQ(two.List()->size(), 1u);
  EXPECT_TRUE(Eventually([&] {
    one.RetryEnds();
    return two.List()->empty();
  }));
}

TEST_F(ZooKeeperLedgerTest, ALastingOperationWhoseEndFailedIsNotCrossed) {
  TcpProxy proxy(Server().port());
  ZooKeeperLedger one({.servers = proxy.address(), .session_timeout_ms = 20'000, .call_timeout_ms = 3'000},
                      root_);
  Operation lasting = Of("migrate", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)});
  lasting.lasting = true;
  ASSERT_OK_AND_ASSIGN(Held held, one.Begin(lasting));
  const std::string id = held.Detach();
  proxy.Cut();
  EXPECT_THAT(one.End(id), FailsWith(absl::StatusCode::kUnavailable, ""));
  proxy.Mend();
  absl::Status crossing;
  ASSERT_TRUE(Eventually([&] {
    crossing = one.Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})).status();
    return !absl::IsUnavailable(crossing);
  }));
  EXPECT_THAT(crossing, FailsWith(kRefused, "migrate"));
}

TEST_F(ZooKeeperLedgerTest, OfAProcessThatWasKilledNothingIsWaitedFor) {
  ZooKeeper zookeeper(Options(Server().address()), nullptr);
  ZooKeeperLedger ledger(zookeeper, root_);
  ASSERT_OK_AND_ASSIGN(const Held hold,
                       ledger.Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})));
  // Stands for an operation that was begun by a process of this machine that has been killed since.
  const std::string path = root_ + "/operations/" + hold.id();
  Operation dead = ledger.List()->front();
  dead.process += "0";
  ASSERT_OK(zookeeper.Set(path, OperationToJson(dead).dump(), 0));
  ZooKeeperLedger other(Options(Server().address()), root_);
  EXPECT_OK(other.Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})).status());
  EXPECT_THAT(hold.Check(), FailsWith(absl::StatusCode::kAborted, ""));
}

TEST_F(ZooKeeperLedgerTest, WhatANewerVersionHasBegunIsNotCrossed) {
  ZooKeeper zookeeper(Options(Server().address()), nullptr);
  ASSERT_OK(zookeeper.Create(root_ + "/operations/1234", R"({"what": "x", "claims": [{"planet": "mars"}]})"));
  ZooKeeperLedger ledger(zookeeper, root_);
  EXPECT_THAT(ledger.Begin(Of("drop", {Claim::Dataset("a", kExclusive)})),
              FailsWith(kRefused, "an operation that this version cannot read"));
  EXPECT_OK(ledger.Release("1234", /*force=*/true).status());
  EXPECT_OK(ledger.Begin(Of("drop", {Claim::Dataset("a", kExclusive)})).status());
}

TEST_F(ZooKeeperLedgerTest, UsersOfZooKeeperShareIt) {
  ZooKeeperOptions first = Options(Server().address());
  first.auth = "operator:secret";
  ZooKeeperLedger one(first, root_);
  ZooKeeperLedger two(Options(Server().address()), root_);
  ASSERT_OK_AND_ASSIGN(Held open, one.Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})));
  ASSERT_OK(one.Begin(Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)})).status());
  EXPECT_THAT(two.Begin(Of("create", {Claim::Shards(ShardSpace::kId, 0, 9, kShared)})),
              FailsWith(kRefused, "'open'"));
  ASSERT_OK_AND_ASSIGN(Held move,
                       two.Begin(Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)})));
  EXPECT_TRUE(move.taken_over());
  EXPECT_OK(move.End());
  EXPECT_OK(two.Release(open.id(), /*force=*/true).status());
  EXPECT_TRUE(one.List()->empty());
}

TEST_F(ZooKeeperLedgerTest, BeginningAndEndingIsARoundTripEach) {
  ZooKeeperLedger ledger(Options(Server().address()), root_);
  ASSERT_OK(ledger.Begin(Of("first", {Claim::Dataset("a", kExclusive)})).status());
  ZooKeeper zookeeper(Options(Server().address()), nullptr);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(ledger.Begin(Of("next", {Claim::Dataset("a", kExclusive)})).status());
  }
  // Each begin was counted once: none was retried on a version that was read again.
  EXPECT_EQ(zookeeper.Get(root_ + "/operations", false)->version, 4);
}

}  // namespace
}  // namespace kvstore
