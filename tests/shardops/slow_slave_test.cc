#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/fail_point.h"
#include "shardops/promote.h"
#include "shardops/replace.h"
#include "shardops/status.h"
#include "tests/shardops/promote_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Masters that die before their slave has all, or that did not wait for it.
namespace kvstore::testing {
namespace {

using shardops::Promote;
using shardops::ReplaceSlave;

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

  /// A MySQL master acknowledges what waits for its slave when it is shut down, and this one was seen without
  /// it.
  void ExpectThatAShutdownCannotBeRuledOut() {
    EXPECT_THAT(TakeOver(), FailsWith(absl::StatusCode::kFailedPrecondition, "was seen alive without it"));
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
  if (OnMySql()) {
    ExpectThatAShutdownCannotBeRuledOut();
    return;
  }
  ASSERT_OK(TakeOver().status());
  EXPECT_THAT(told_, ::testing::HasSubstr("it lacks 1 transactions"));
  EXPECT_THAT(told_, ::testing::HasSubstr("which no client was told of, because"));
  EXPECT_THAT(told_, ::testing::HasSubstr("Nor has any client read what they wrote"));
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
  if (OnMySql()) {
    ExpectThatAShutdownCannotBeRuledOut();
    return;
  }
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

}  // namespace
}  // namespace kvstore::testing
