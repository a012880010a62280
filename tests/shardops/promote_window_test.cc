#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/fail_point.h"
#include "shardops/promote.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Between an emergency promotion's claim and its publication, another operator's promotion opens the old
/// master: what that acknowledges then must not be lost.
namespace kvstore::testing {
namespace {

using shardops::Promote;

class PromoteWindowTest : public ::testing::Test {
 protected:
  ~PromoteWindowTest() override { SetFailPointHook(nullptr); }
  PairFleet pair_;
};

TEST_F(PromoteWindowTest, AMasterIsNotOpenedWhenAnEmergencyHasTakenItsClaims) {
  pair_.a().Kill();
  pair_.a().Start();
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.opening") return;
    // An emergency promotion has begun. It has yet to read the note about the master, and to publish.
    EXPECT_OK(pair_.fleet().ledger->BeginOver(
        {.what = "promote --emergency",
         .claims = {Claim::Host(pair_.host_a().ToString(), ClaimMode::kExclusive)}}));
  });
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_a(), {}).status(),
              FailsWith(absl::StatusCode::kAborted, "is not held any more"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  EXPECT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "0\n");
}

TEST_F(PromoteWindowTest, AMasterThatIsOpenedAgainAcknowledgesNothingWithoutTheSlave) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.fenced") return;
    // An emergency promotion has taken the claims, and stopped what the slave receives, but not published.
    EXPECT_OK(pair_.fleet().ledger->BeginOver(
        {.what = "promote --emergency",
         .claims = {Claim::Host(pair_.host_b().ToString(), ClaimMode::kExclusive)}}));
    pair_.b().Run("STOP SLAVE IO_THREAD");
    pair_.b().Run("KILL " +
                  pair_.b().Run(std::string("SELECT IS_USED_LOCK('") + shardops::kOperatorLock + "')"));
  });
  EXPECT_FALSE(Promote(pair_.fleet(), pair_.host_b(), {}).ok());
  SetFailPointHook(nullptr);
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "0\n") << "it went back";
  std::atomic<bool> acknowledged{false};
  std::thread client([&] {
    pair_.a().Run("CREATE DATABASE written_in_between");
    acknowledged = true;
  });
  EXPECT_TRUE(Eventually([&] {
    return pair_.a().Run("SHOW PROCESSLIST").find("Waiting for semi-sync ACK") != std::string::npos;
  }));
  EXPECT_FALSE(acknowledged) << "what the slave has not received is lost by the promotion";
  pair_.b().Run("START SLAVE IO_THREAD");
  client.join();
  EXPECT_TRUE(acknowledged);
}

TEST_F(PromoteWindowTest, AMasterThatTookNoWritesIsNotOpenedByAPromotionThatFails) {
  CutOffSlave(pair_.a(), pair_.b());
  pair_.a().Run("CREATE DATABASE acknowledged_alone");
  pair_.b().Run("STOP SLAVE; RESET SLAVE ALL");
  pair_.a().Run("SET GLOBAL read_only = ON");
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {}).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "lacks 1 transactions that"));
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  EXPECT_EQ(pair_.Master(), pair_.host_a());
  EXPECT_OK(Promote(pair_.fleet(), pair_.host_a(), {}).status());
  EXPECT_TRUE(Eventually(
      [&] { return pair_.b().Run("SHOW DATABASES LIKE 'acknowledged_alone'") == "acknowledged_alone\n"; }));
}

}  // namespace
}  // namespace kvstore::testing
