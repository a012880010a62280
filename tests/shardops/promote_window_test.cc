#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/fail_point.h"
#include "shardops/notes.h"
#include "shardops/promote.h"
#include "shardops/status.h"
#include "tests/shardops/pair.h"
#include "tests/shardops/promote_fixture.h"
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

/// A process that slept, while another one did what was left, and put the roles back.
TEST_F(PromoteWindowTest, AProcessThatWasOvertakenMakesNobodyFollow) {
  pair_.b().Run("STOP SLAVE; RESET SLAVE ALL");
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.following") return;
    EXPECT_OK(pair_.fleet().ledger->BeginOver(
        {.what = "promote", .claims = {Claim::Host(pair_.host_b().ToString(), ClaimMode::kExclusive)}}));
  });
  const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {});
  SetFailPointHook(nullptr);
  ASSERT_OK(promotion);
  EXPECT_FALSE(promotion->follows);
  EXPECT_EQ(pair_.b().Run("SHOW SLAVE STATUS"), "");
  // Or it sleeps a moment later.
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.following") return;
    pair_.b().Run("KILL " +
                  pair_.b().Run(std::string("SELECT IS_USED_LOCK('") + shardops::kOperatorLock + "')"));
  });
  const auto again = Promote(pair_.fleet(), pair_.host_a(), {});
  SetFailPointHook(nullptr);
  ASSERT_OK(again);
  EXPECT_FALSE(again->follows);
  EXPECT_EQ(pair_.b().Run("SHOW SLAVE STATUS"), "");
}

TEST_F(PromoteWindowTest, ASlaveThatWasOnlyToldToReceiveNothingFollowsAgain) {
  pair_.b().Run("STOP SLAVE IO_THREAD");
  const auto promotion = Promote(pair_.fleet(), pair_.host_a(), {});
  ASSERT_OK(promotion);
  EXPECT_TRUE(promotion->follows);
}

/// Somebody fences a host in the moment in which kv operate opens it.
TEST_F(PromoteWindowTest, AFenceHoldsThoughTheHostIsOpenedAtTheSameTime) {
  shardops::FleetOperator& fleet = pair_.fleet();
  const Host a = pair_.host_a();
  const auto fence = [&] { EXPECT_OK(shardops::Fence(fleet, a)); };
  const auto open = [&] { return shardops::Promote(fleet, a, {.only_complete = true}); };
  const auto once_at = [](const std::string& name, const std::function<void()>& act) {
    SetFailPointHook([name, act, done = std::make_shared<bool>(false)](std::string_view at) {
      if (at == name && !std::exchange(*done, true)) act();
    });
  };
  for (const char* const point : {"promote.allowing", "promote.allowed"}) {
    pair_.a().Run("SET GLOBAL read_only = ON");
    once_at(point, fence);
    open().IgnoreError();
    EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n") << point;
    EXPECT_THAT(open(), FailsWith(absl::StatusCode::kFailedPrecondition, "since it was fenced by")) << point;
    ASSERT_OK(shardops::Promote(fleet, a, {}));
  }
  once_at("fence.stopped", [&] { EXPECT_OK(open()); });
  fence();
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
}

TEST_F(PromoteWindowTest, AFenceThatIsNewerThanTheCommandToOpenTheHostHolds) {
  ASSERT_OK(shardops::Fence(pair_.fleet(), pair_.host_a()));
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.opening") return;
    EXPECT_OK(shardops::Fence(pair_.fleet(), pair_.host_a()));
  });
  EXPECT_FALSE(Promote(pair_.fleet(), pair_.host_a(), {}).ok());
  SetFailPointHook(nullptr);
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "1\n");
  ASSERT_OK_AND_ASSIGN(const auto note, shardops::LoadNote(pair_.fleet(), pair_.host_a()));
  EXPECT_NE(shardops::FencedBy(note), "");
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_a(), {}));
  EXPECT_EQ(pair_.a().Run("SELECT @@read_only"), "0\n");
}

TEST_F(PromoteWindowTest, AFenceHoldsAgainstAnEmergencyThatIsAboutToOpenTheHost) {
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  // An older fence of the slave, which somebody saw take writes, is no reason not to promote it.
  ASSERT_OK(shardops::Fence(pair_.fleet(), pair_.host_b()));
  pair_.a().Kill();
  SetFailPointHook([&](std::string_view name) {
    if (name != "promote.published") return;
    EXPECT_OK(shardops::Fence(pair_.fleet(), pair_.host_b()));
  });
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true}),
              FailsWith(absl::StatusCode::kUnavailable, "No host of the pair takes writes now"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "1\n");
  EXPECT_THAT(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .only_complete = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "since it was fenced by"));
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {}));
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "0\n");
}

TEST_F(PromoteWindowTest, AnOlderFenceOfTheSlaveDoesNotKeepASuccessorFromOpeningIt) {
  ASSERT_OK(shardops::InspectFleet(pair_.fleet()));
  ASSERT_OK(shardops::Fence(pair_.fleet(), pair_.host_b()));
  pair_.a().Kill();
  SetFailPointHook([&](std::string_view name) {
    if (name == "promote.published") throw Died();
  });
  EXPECT_THROW(EXPECT_OK(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true})), Died);
  SetFailPointHook(nullptr);
  ASSERT_OK(Promote(pair_.fleet(), pair_.host_b(), {.emergency = true, .only_complete = true}));
  EXPECT_EQ(pair_.b().Run("SELECT @@read_only"), "0\n");
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
