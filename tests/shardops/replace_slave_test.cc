#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/fail_point.h"
#include "shardops/fleet_check.h"
#include "shardops/replace.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/promote_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Slaves that are lost, or hang, are replaced by another host.
namespace kvstore::testing {
namespace {

using shardops::ReplaceSlave;

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
    EXPECT_OK(maps->Assign(*fleet.ledger, edit, ShardSpace::kId, 7, 7, elsewhere));
  });
  EXPECT_OK(ReplaceSlave(pair_.fleet(), pair_.host_b(), {.by = by}));
  SetFailPointHook(nullptr);
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  ASSERT_OK(maps);
  EXPECT_EQ(maps->PairOf(ShardSpace::kId, 0), (shardops::Pair{pair_.host_a(), by}));
  EXPECT_EQ(maps->PairOf(ShardSpace::kMod, 0), (shardops::Pair{pair_.host_a(), by}));
  EXPECT_EQ(maps->PairOf(ShardSpace::kId, 7), elsewhere);
}

TEST_F(PromoteTest, ASlaveThatIsLostIsReplacedByAnotherHost) {
  History history(Clients::kKeys);
  // Two write no more than a new slave of MySQL applies beside them.
  Clients clients(*store_, "events", history, 2, Seed("replaced"));
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

}  // namespace
}  // namespace kvstore::testing
