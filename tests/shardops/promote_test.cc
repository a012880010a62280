#include "shardops/promote.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "shardops/replace.h"
#include "shardops/status.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/promote_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Masters are replaced while clients write; the clients' history is checked.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using shardops::PromoteOptions;
using shardops::ReplaceSlave;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(PromoteTest, PlannedUnderLoadNobodyNotices) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("promote"));
  for (int round = 0; round < 4; ++round) {
    clients.Work(100);
    const Host next = OtherHost();
    const auto promotion = PromoteInTime(next);
    ASSERT_OK(promotion.status());
    EXPECT_EQ(pair_.Master(), next);
    EXPECT_TRUE(promotion->follows);
    RecordProperty("write_pause_ms", static_cast<int>(promotion->write_pause_ms));
    std::printf("writes were held for %d ms\n", static_cast<int>(promotion->write_pause_ms));
  }
  clients.Work(100);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
  // Run again, it finds nothing to do.
  EXPECT_OK(Promote(pair_.fleet(), pair_.Master(), {}).status());
}

TEST_F(PromoteTest, StoppedAtAnyStepItGoesOnOrBack) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("stopped"));
  for (const bool back : {false, true}) {
    for (const char* const point :
         {"promote.begin", "promote.stopped", "promote.fenced", "promote.applied", "promote.leads",
          "promote.published", "promote.opened", "promote.attached"}) {
      SCOPED_TRACE(fmt::format("{} {}", point, back ? "back" : "on"));
      const Host before = pair_.Master();
      const Host next = OtherHost();
      SetFailPointHook([&](std::string_view name) {
        if (name == point) throw Died();
      });
      // The clients may have left the slave too far behind.
      EXPECT_THROW(EXPECT_OK(PromoteInTime(next).status()), Died);
      SetFailPointHook(nullptr);
      const bool published = pair_.Master() == next;
      const Host last = back && !published ? before : next;
      const auto promotion = PromoteInTime(last);
      ASSERT_OK(promotion.status());
      EXPECT_EQ(pair_.Master(), last);
      EXPECT_TRUE(promotion->follows);
      clients.Work(20);
    }
  }
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(PromoteTest, AfterTheMasterWasKilledEveryAcknowledgedWriteIsThere) {
  const uint64_t rounds = Rounds("KV_PROMOTE_ROUNDS", 20);
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("killed master"));
  uint64_t made_new = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    clients.Work(20);
    MariaDbServer& old = Leader();
    // As `kv shards watch` does, this records that the slave has everything.
    ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
    const Host before = pair_.Master();
    const Host next = OtherHost();
    old.Kill();
    // A slave may have received more than it applies within the usual time.
    ASSERT_OK(
        Promote(pair_.fleet(), next, {.emergency = true, .catch_up = std::chrono::minutes(1)}).status());
    clients.Work(20);
    // The old master comes back, and nobody can write to it.
    old.Start();
    EXPECT_EQ(old.Run("SELECT @@read_only"), "1\n");
    const auto attached = Promote(pair_.fleet(), next, {});
    ASSERT_OK(attached.status());
    if (attached->follows) continue;
    // Now and then it has a last transaction that its slave never received, and no client was told of.
    ASSERT_OK(ReplaceSlave(pair_.fleet(), before, {.discard = true}));
    ++made_new;
  }
  std::printf("%d of %d old masters were made new\n", static_cast<int>(made_new), static_cast<int>(rounds));
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(PromoteTest, WhatIsNotInOrderIsRefusedAndNothingChanges) {
  const auto refused = [&](const Host& host, const PromoteOptions& options, const std::string& why) {
    EXPECT_THAT(Promote(pair_.fleet(), host, options), FailsWith(absl::StatusCode::kFailedPrecondition, why));
    EXPECT_EQ(pair_.Master(), pair_.host_a());
    EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "0\n");
  };
  refused({"127.0.0.1", 1}, {}, "is in no shard map");
  refused(pair_.host_b(), {.emergency = true}, "answers: leave --emergency away");
  const std::string user = std::exchange(pair_.fleet().access.admin.user, "nobody");
  refused(pair_.host_b(), {}, "Access denied");
  pair_.fleet().access.admin.user = user;
  pair_.b().Run("STOP SLAVE; CHANGE MASTER TO master_delay = 30; START SLAVE");
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(store_->PutRow("events", "late", {&cell, 1}, {}).status());
  EXPECT_TRUE(Eventually([&] {
    return std::string(Promote(pair_.fleet(), pair_.host_b(), {}).status().message()).find("s behind") !=
           std::string::npos;
  }));
  pair_.b().Run("STOP SLAVE; CHANGE MASTER TO master_delay = 0; START SLAVE");
  pair_.b().Run("STOP SLAVE SQL_THREAD");
  refused(pair_.host_b(), {}, "does not apply");
  pair_.b().Run("START SLAVE SQL_THREAD; STOP SLAVE IO_THREAD");
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  refused(pair_.host_b(), {}, "is not connected");
  pair_.b().Run("START SLAVE IO_THREAD; SET GLOBAL read_only = OFF");
  refused(pair_.host_b(), {}, "takes writes");
  pair_.b().Run("SET GLOBAL read_only = ON; STOP SLAVE; CHANGE MASTER TO master_port = 1");
  refused(pair_.host_b(), {}, "the map says");
}

TEST_F(PromoteTest, ASlaveThatMayLackSomethingIsRefusedUntilTheLossIsAccepted) {
  const auto put = [&](const std::string& row) {
    const CellWrite cell{"c", "v", std::nullopt};
    return store_->PutRow("events", row, {&cell, 1}, {}).status();
  };
  EXPECT_OK(put("both"));
  // The master acknowledges commits without its slave.
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  pair_.b().Run("STOP SLAVE IO_THREAD");
  for (int i = 0; i < 3; ++i) EXPECT_OK(put("lost"));
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.a().Kill();
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "it lacks 3 transactions"));
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .accept_loss = 2}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "it lacks 3 transactions"));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .accept_loss = 3}).status());
  EXPECT_TRUE(Eventually([&] { return put("new").ok(); }));
  EXPECT_EQ(store_->GetRow("events", "both", {})->items.size(), 1u);
  EXPECT_EQ(store_->GetRow("events", "lost", {})->items.size(), 0u);
  // The old master has transactions that the new one lacks, so it cannot follow.
  pair_.a().Start();
  const auto attached = Promote(pair_.fleet(), pair_.host_b(), {});
  ASSERT_OK(attached.status());
  EXPECT_FALSE(attached->follows);
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), pair_.host_a(), {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--discard"));
  ASSERT_OK(ReplaceSlave(pair_.fleet(), pair_.host_a(), {.discard = true}));
  EXPECT_OK(put("and on"));
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  EXPECT_EQ(store_->GetRow("events", "both", {})->items.size(), 1u);
  EXPECT_EQ(store_->GetRow("events", "and on", {})->items.size(), 1u);
}

TEST_F(PromoteTest, AMasterIsNotOpenedAgainBesideOneThatWasPromotedMeanwhile) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.fenced") return;
    // This is what an emergency promotion does whose operator cannot reach the master, and has ended the
    // connection that had the slave's claim.
    shardops::FleetOperator& fleet = pair_.fleet();
    const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
    ASSERT_OK_AND_ASSIGN(
        const Held held,
        fleet.ledger->BeginOver({.what = "promote --emergency",
                                 .claims = {Claim::Host(pair_.host_b().ToString(), ClaimMode::kExclusive)}}));
    EXPECT_OK(maps->Replace(*fleet.ledger, held, pair_.hosts(), {pair_.host_b(), pair_.host_a()}));
    pair_.b().Run("KILL " +
                  pair_.b().Run(std::string("SELECT IS_USED_LOCK('") + shardops::kOperatorLock + "')"));
  });
  const absl::Status status = Promote(pair_.fleet(), pair_.host_b(), {}).status();
  SetFailPointHook(nullptr);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("stays read-only"));
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  // The maps say which host is to lead; the emergency promotion would have had it stop following.
  pair_.b().Run("STOP SLAVE; RESET SLAVE ALL");
  EXPECT_OK(Promote(pair_.fleet(), pair_.host_b(), {}).status());
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "0\n");
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
}

TEST_F(PromoteTest, TwoOperatorsAtOnceEndWithOneMaster) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("two operators"));
  for (const bool same : {true, false}) {
    SCOPED_TRACE(same);
    const Host before = pair_.Master();
    const Host next = OtherHost();
    bool other = false;
    SetFailPointHook([&](std::string_view name) {
      if (name != "promote.applied" || std::exchange(other, true)) return;
      EXPECT_THAT(Promote(pair_.fleet(), same ? next : before, {}),
                  FailsWith(absl::StatusCode::kFailedPrecondition, "cannot begin now"));
    });
    ASSERT_OK(PromoteInTime(next).status());
    SetFailPointHook(nullptr);
    EXPECT_EQ(pair_.Master(), next);
    EXPECT_EQ(Leader().Run("SELECT @@read_only"), "0\n");
    EXPECT_EQ(Other().Run("SELECT @@read_only"), "1\n");
    clients.Work(50);
  }
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(PromoteTest, WithoutZooKeeperItStopsAndSaysHowToGoOn) {
  SetFailPointHook([&](std::string_view name) {
    if (name == "promote.leads") pair_.zookeeper().Stop();
  });
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {}),
              FailsWith(absl::StatusCode::kUnavailable, "No host of the pair takes writes now"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "1\n");
  pair_.zookeeper().Start();
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {}).status());
  EXPECT_EQ(pair_.Master(), pair_.host_b());
}

TEST_F(PromoteTest, ASlaveThatFollowsNobodyIsNotTrusted) {
  pair_.b().Run("STOP SLAVE; RESET SLAVE ALL");
  pair_.a().Kill();
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "it follows nobody"));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(PromoteTest, AnEmergencyThatWasStoppedGoesOn) {
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.a().Kill();
  for (const char* const point : {"promote.begin", "promote.applied", "promote.leads", "promote.published"}) {
    SetFailPointHook([&](std::string_view name) {
      if (name == point) throw Died();
    });
    EXPECT_THROW(EXPECT_OK(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}).status()), Died)
        << point;
  }
  SetFailPointHook(nullptr);
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}).status());
  EXPECT_EQ(pair_.Master(), pair_.host_b());
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "0\n");
}

TEST_F(PromoteTest, AHostThatIsShutTakesNoWritesOfApplications) {
  EXPECT_OK(shardops::Fence(pair_.fleet(), pair_.host_a()));
  const CellWrite cell{"c", "v", std::nullopt};
  {
    const CallScope scope({.deadline = CallLimits::Clock::now() + std::chrono::milliseconds(300)});
    EXPECT_FALSE(store_->PutRow("events", "r", {&cell, 1}, {}).ok());
    EXPECT_FALSE(store_->GetRow("events", "r", {}).ok()) << "what it has may be old";
  }
  // A promotion of the host that the map names the master opens it again.
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  EXPECT_OK(store_->PutRow("events", "r", {&cell, 1}, {}));
}

/// A master that has lost its slave, and was replaced by it, say: its commits wait for ever.
TEST_F(PromoteTest, AMasterWhoseCommitsWaitForItsSlaveCanBeFenced) {
  pair_.b().Run("STOP SLAVE IO_THREAD");
  std::thread writer([&] {
    // The client must not be told that it is written.
    EXPECT_THROW(pair_.a().Run("CREATE DATABASE db99999"), std::runtime_error);
  });
  EXPECT_TRUE(Eventually([&] {
    return pair_.a().Run(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE '%semi-sync%'") != "0\n";
  }));
  EXPECT_OK(shardops::Fence(pair_.fleet(), pair_.host_a()));
  writer.join();
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  const auto admin = shardops::HostAdmin::Open(pair_.host_a(), pair_.fleet().access);
  ASSERT_OK(admin);
  const auto state = (*admin)->Read();
  ASSERT_OK(state);
  EXPECT_TRUE(state->semi_sync_master) << "if it is opened again, its commits must wait as before";
}

/// On MySQL a fence closes a host to clients for a moment, and has no commit wait for a slave meanwhile.
TEST_F(PromoteTest, AFenceThatWasCutShortIsCompletedByTheNext) {
  if (!OnMySql()) GTEST_SKIP() << "needs MySQL servers: ./dev test --mysql9";
  pair_.a().Run("SET GLOBAL offline_mode = ON");
  pair_.a().Run("SET GLOBAL rpl_semi_sync_source_enabled = OFF");
  const auto reports = shardops::InspectFleet(pair_.fleet());
  ASSERT_OK(reports);
  EXPECT_THAT(reports->front().problems,
              Contains(HasSubstr("kv shards fence " + pair_.host_a().ToString() + " completes it")));
  ASSERT_OK(shardops::Fence(pair_.fleet(), pair_.host_a()));
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only, @@offline_mode, @@rpl_semi_sync_source_enabled"), "1\t0\t1\n");
}

}  // namespace
}  // namespace kvstore::testing
