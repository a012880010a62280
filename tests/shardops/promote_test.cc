#include "shardops/promote.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "shardops/fleet_check.h"
#include "shardops/gtid.h"
#include "shardops/replace.h"
#include "shardops/status.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Masters are replaced while clients write; the clients' history is checked.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using shardops::PromoteOptions;
using shardops::ReplaceSlave;

TEST(Gtid, WhatIsMissingIsCountedByDomain) {
  EXPECT_EQ(shardops::CountMissing("0-1-17", "0-1-17"), 0u);
  EXPECT_EQ(shardops::CountMissing("0-2-20", "0-1-17"), 3u);
  EXPECT_EQ(shardops::CountMissing("0-1-17", "0-2-20"), 0u);
  EXPECT_EQ(shardops::CountMissing("0-1-5,1-4-3", "0-1-5"), 3u);
  EXPECT_EQ(shardops::CountMissing("0-1-5", ""), 5u);
  EXPECT_EQ(shardops::CountMissing("", "0-1-5"), 0u);
  EXPECT_EQ(shardops::CountBeyond("0-1-12660", "0-1-12659,0-2-13335", false), 1u);
  EXPECT_EQ(shardops::CountBeyond("0-2-13000", "0-1-12659,0-2-13335", false), 0u);
  EXPECT_EQ(shardops::CountBeyond("0-3-5", "0-1-12659", false), 0u);
  EXPECT_EQ(shardops::CountBeyond("0-3-5", "0-1-12659", true), 1u);
  EXPECT_EQ(shardops::PositionOfOtherDomains("1-1-50,2-3-8,4-7-1", "2-3-9", 7), "1-1-50");
  EXPECT_EQ(shardops::LatestOfEachDomain("0-1-5,1-4-3", "0-2-7,2-1-1"), "0-2-7,1-4-3,2-1-1");
}

class PromoteTest : public ::testing::Test {
 protected:
  PromoteTest() : store_(pair_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
  }
  ~PromoteTest() override { SetFailPointHook(nullptr); }

  /// The servers of the master by the map, and of the other host.
  MariaDbServer& Leader() { return pair_.Master() == pair_.host_a() ? pair_.a() : pair_.b(); }
  MariaDbServer& Other() { return pair_.Master() == pair_.host_a() ? pair_.b() : pair_.a(); }
  Host OtherHost() { return pair_.Master() == pair_.host_a() ? pair_.host_b() : pair_.host_a(); }

  /// Promotes a host to which much is written. As long as it is far behind, the command asks to be run again.
  absl::StatusOr<shardops::Promotion> PromoteInTime(const Host& host) {
    auto promotion = Promote(pair_.fleet(), host, {});
    EXPECT_TRUE(Eventually([&] {
      if (!absl::StrContains(promotion.status().message(), "s behind")) return true;
      promotion = Promote(pair_.fleet(), host, {});
      return false;
    }));
    return promotion;
  }

  const TempDir dir_;
  PairFleet pair_;
  std::unique_ptr<Router> store_;
};

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

/// Is thrown at a fail point, as if the process had died there.
struct Died {};

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
      EXPECT_THROW(EXPECT_OK(Promote(pair_.fleet(), next, {}).status()), Died);
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

/// A slave that receives slowly, or not at all, what its master writes.
class SlowSlaveTest : public PromoteTest {
 protected:
  ~SlowSlaveTest() override {
    if (put_.joinable()) put_.join();
  }

  /// Makes the slave receive 1 KB a second.
  void Slow() { pair_.b().Run("SET GLOBAL read_binlog_speed_limit = 1"); }
  absl::Status Put(const std::string& row, size_t size) {
    const std::string value(size, 'v');
    const CellWrite cell{"c", value, std::nullopt};
    return store_->PutRow("events", row, {&cell, 1}, {}).status();
  }
  std::string RowsThatWait() {
    return pair_.a().Run("SELECT COUNT(*) FROM mod00000.events WHERE row_key = 'waits'");
  }
  /// The slave hangs; a commit waits for it, with more than a socket buffers; the master is inspected again,
  /// and dies. Then the slave goes on.
  void MasterDiesBeforeItsSlaveHasAll() {
    pair_.b().Pause();
    put_ = std::thread([this] {
      try {
        pair_.a().Run(
            "SET SESSION binlog_format = ROW;"
            "INSERT INTO mod00000.events VALUES ('waits', 'c', 1, REPEAT('v', 14000000))");
        answered_ = true;
      } catch (const std::runtime_error&) {
      }
    });
    EXPECT_TRUE(Eventually([&] {
      return !pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'").ends_with("\t0\n");
    }));
    auto& pool = pair_.fleet().access.admin.pool;
    const auto before = pool;
    pool.connect_timeout_s = 1;
    pool.read_timeout_s = 1;
    EXPECT_OK(shardops::InspectFleet(pair_.fleet()));
    pool = before;
    rows_that_wait_ = RowsThatWait();
    pair_.a().Kill();
    put_.join();
    pair_.b().Resume();
  }
  absl::StatusOr<shardops::Promotion> TakeOver() {
    told_.clear();
    pair_.fleet().report = [this](const std::string& text) { told_ += text + "\n"; };
    return Promote(pair_.fleet(), pair_.host_b(), {.emergency = true});
  }

  std::string told_;
  std::string rows_that_wait_;
  std::thread put_;
  std::atomic<bool> answered_{false};
};

TEST_F(SlowSlaveTest, WhatNobodyWasToldOfIsNoLoss) {
  EXPECT_OK(Put("told", 10));
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  MasterDiesBeforeItsSlaveHasAll();
  EXPECT_FALSE(answered_);
  EXPECT_EQ(rows_that_wait_, "0\n") << "nobody has read it";
  ASSERT_OK(TakeOver().status());
  // On MySQL what waits for the slave is not in the master's set of transactions yet, so nothing is known to
  // be lacking.
  if (!OnMySql()) {
    EXPECT_THAT(told_, ::testing::HasSubstr("it lacks 1 transactions"));
    EXPECT_THAT(told_, ::testing::HasSubstr("which no client was told of, because"));
    EXPECT_THAT(told_, ::testing::HasSubstr("Nor has any client read what they wrote"));
  }
  EXPECT_TRUE(Eventually([&] {
    const auto found = store_->GetRow("events", "told", {});
    return found.ok() && found->items.size() == 1;
  }));
}

TEST_F(SlowSlaveTest, WhatOthersMayHaveReadIsSaid) {
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_COMMIT");
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  MasterDiesBeforeItsSlaveHasAll();
  EXPECT_FALSE(answered_);
  EXPECT_EQ(rows_that_wait_, "1\n");
  ASSERT_OK(TakeOver().status());
  EXPECT_THAT(told_, ::testing::HasSubstr("clients may have read what they wrote"));
}

/// Why Slow does nothing on MySQL.
constexpr char kNoSpeedLimit[] = "read_binlog_speed_limit, which makes a slave receive slowly";

TEST_F(SlowSlaveTest, WhatTheMasterAnsweredAloneIsALoss) {
  KV_SKIP_ON_MYSQL(kNoSpeedLimit);
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  Slow();
  // The master waits for its slave for 50 ms only.
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_timeout = 50");
  EXPECT_OK(Put("alone", 100'000));
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_timeout = 4000000");
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.a().Kill();
  EXPECT_THAT(TakeOver(), FailsWith(absl::StatusCode::kFailedPrecondition, "did not wait for its slave"));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(SlowSlaveTest, WhatTheMasterAnsweredAloneBeforeItWaitedAgainIsALoss) {
  KV_SKIP_ON_MYSQL(kNoSpeedLimit);
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  pair_.b().Run("STOP SLAVE IO_THREAD");
  EXPECT_TRUE(Eventually(
      [&] { return pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t0\n"); }));
  EXPECT_OK(Put("alone", 100'000));
  // The master now says that it waits, while what it has acknowledged alone is still in flight to the slave.
  Slow();
  pair_.b().Run("START SLAVE IO_THREAD");
  EXPECT_TRUE(Eventually(
      [&] { return pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1\n"); }));
  pair_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON");
  EXPECT_TRUE(pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_status'").ends_with("\tON\n"));
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.a().Kill();
  EXPECT_THAT(TakeOver(), FailsWith(absl::StatusCode::kFailedPrecondition, "it lacks 1 transactions"));
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(PromoteTest, AMasterThatWasLetGoIsNotTrustedForWhatItDidBefore) {
  KV_SKIP_ON_MYSQL(kNoSpeedLimit);
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  pair_.b().Run("STOP SLAVE");
  SetFailPointHook([&](std::string_view name) {
    if (name == "replace.empty") throw Died();
  });
  MariaDbServer third({"--log-bin=binlog", "--log-slave-updates", "--gtid-strict-mode=ON", "--server-id=9",
                       "--gtid-domain-id=1", "--read-only=ON", "--init-rpl-role=SLAVE",
                       "--rpl-semi-sync-slave-enabled=ON", "--rpl-semi-sync-master-timeout=4000000"});
  EXPECT_THROW(
      EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = Host{"127.0.0.1", third.port()}})), Died);
  SetFailPointHook(nullptr);
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(store_->PutRow("events", "alone", {&cell, 1}, {}).status());
  // The slave comes back and looks as it should, but has not received what was acknowledged without it.
  pair_.b().Run("SET GLOBAL read_binlog_speed_limit = 1; START SLAVE");
  EXPECT_TRUE(Eventually(
      [&] { return pair_.b().Run("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'").ends_with("\tON\n"); }));
  pair_.a().Kill();
  const absl::Status refused = Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  // The second message comes if the slave has begun to reconnect by then.
  EXPECT_THAT(std::string(refused.message()),
              ::testing::AnyOf(::testing::HasSubstr("did not wait for its slave"),
                               ::testing::HasSubstr("it was no semi-synchronous slave at the end")));
}

/// The arguments of a host that can become a slave of the pair.
const std::vector<std::string> kThird = {"--log-bin=binlog",
                                         "--log-slave-updates",
                                         "--gtid-strict-mode=ON",
                                         "--server-id=9",
                                         "--gtid-domain-id=1",
                                         "--read-only=ON",
                                         "--init-rpl-role=SLAVE",
                                         "--rpl-semi-sync-slave-enabled=ON",
                                         "--rpl-semi-sync-master-timeout=4000000"};

TEST_F(PromoteTest, AMapThatChangesDuringACopyDoesNotMakeTheCopyUseless) {
  const MariaDbServer third(kThird);
  const Host by{"127.0.0.1", third.port()};
  const shardops::Pair elsewhere{Host{"127.0.0.1", 1}, Host{"127.0.0.1", 2}};
  SetFailPointHook([&](std::string_view name) {
    if (name != "replace.copied") return;
    // Another operator changes the homes of other shards.
    shardops::FleetOperator& fleet = pair_.fleet();
    const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
    ASSERT_OK_AND_ASSIGN(const Held edit, fleet.ledger->Begin({.what = "edit"}));
    EXPECT_OK(maps->Assign(*fleet.ledger, edit, /*mod=*/false, 7, 7, elsewhere));
  });
  EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by}));
  SetFailPointHook(nullptr);
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  ASSERT_OK(maps);
  EXPECT_EQ(maps->PairOf(/*mod=*/false, 0), (shardops::Pair{pair_.host_a(), by}));
  EXPECT_EQ(maps->PairOf(/*mod=*/true, 0), (shardops::Pair{pair_.host_a(), by}));
  EXPECT_EQ(maps->PairOf(/*mod=*/false, 7), elsewhere);
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

TEST_F(PromoteTest, ASlaveThatIsLostIsReplacedByAnotherHost) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("replaced"));
  clients.Work(50);
  MariaDbServer third(kThird);
  const Host by{"127.0.0.1", third.port()};
  // From now on commits wait for a slave, without an end.
  pair_.b().Kill();
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), pair_.host_a(), {.by = by}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "is a master"));
  EXPECT_THAT(ReplaceSlave(pair_.fleet(), by, {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "of no shard"));
  SetFailPointHook([&](std::string_view name) {
    if (name == "replace.copied") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by})), Died);
  SetFailPointHook(nullptr);
  ASSERT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by, .discard = true}));
  clients.Work(50);
  EXPECT_EQ(pair_.a().Run("SELECT @@rpl_semi_sync_master_wait_no_slave"), "1\n");
  const auto promotion = PromoteInTime(by);
  ASSERT_OK(promotion.status());
  EXPECT_TRUE(promotion->follows);
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
  const auto found = shardops::CheckFleet(pair_.fleet(), *store_->ListDatasets());
  ASSERT_OK(found.status());
  EXPECT_TRUE(found->problems.empty()) << found->problems.front();
}

TEST_F(PromoteTest, ASlaveThatHangsIsReplacedAndNobodyWaitsForItMeanwhile) {
  History history(Clients::kKeys);
  Clients clients(*store_, "events", history, 4, Seed("hangs"));
  clients.Work(50);
  MariaDbServer third({"--log-bin=binlog", "--log-slave-updates", "--gtid-strict-mode=ON", "--server-id=9",
                       "--gtid-domain-id=1", "--read-only=ON", "--init-rpl-role=SLAVE",
                       "--rpl-semi-sync-slave-enabled=ON", "--rpl-semi-sync-master-timeout=4000000"});
  // The slave's connection stays, so that the master counts it, and commits wait for it.
  pair_.b().Pause();
  EXPECT_TRUE(Eventually([&] {
    return !pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_wait_sessions'").ends_with("\t0\n");
  }));
  EXPECT_TRUE(pair_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1\n"));
  SetFailPointHook([&](std::string_view name) {
    if (name == "replace.empty") clients.Work(20);
  });
  EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = Host{"127.0.0.1", third.port()}}));
  SetFailPointHook(nullptr);
  clients.Work(50);
  EXPECT_EQ(pair_.a().Run("SELECT @@rpl_semi_sync_master_wait_no_slave"), "1\n");
  pair_.b().Resume();
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
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
}

}  // namespace
}  // namespace kvstore::testing
