#include "operate/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kvstore::testing {
namespace {

using operate::Judge;
using operate::kDeadAfterMs;
using operate::kFreshMs;
using operate::Member;
using operate::Silence;
using operate::SlaveSays;
using ::testing::HasSubstr;

constexpr uint64_t kNow = 1'000'000;

Silence Silent(uint64_t for_ms = kDeadAfterMs, SlaveSays slave = SlaveSays::kLostIt) {
  return {.master = {"a", 3306},
          .error = "refused",
          .for_ms = for_ms,
          .slave = slave,
          .lost_ms = operate::kLostForMs,
          .slave_says = "slave's words"};
}

Member Other(std::vector<Silence> silences, uint64_t said_ms = kNow) {
  return {.id = "1", .who = "bob@ops2", .said_ms = said_ms, .says = operate::Says(silences)};
}

TEST(Verdict, AMasterIsDeadIfTwoProcessesAndItsSlaveHaveLostIt) {
  const auto verdict = Judge(Silent(), std::vector{Other({Silent()})}, kNow);
  EXPECT_TRUE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("refused; slave's words; bob@ops2 cannot reach it either"));
}

TEST(Verdict, AMasterThatHasJustStoppedAnsweringIsNotDead) {
  const auto verdict = Judge(Silent(kDeadAfterMs - 1), std::vector{Other({Silent()})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("2999 ms"));
}

TEST(Verdict, AMasterThatTheOtherHasMissedForAMomentIsNotDead) {
  const auto verdict = Judge(Silent(), std::vector{Other({Silent(10)})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("bob@ops2 has not reached it for 10 ms only"));
}

TEST(Verdict, AMasterWhoseSlaveIsAboutToConnectAgainIsNotDead) {
  Silence moment = Silent();
  moment.lost_ms = operate::kLostForMs - 1;
  EXPECT_FALSE(Judge(moment, std::vector{Other({Silent()})}, kNow).dead);
  EXPECT_THAT(Judge(moment, std::vector{Other({Silent()})}, kNow).why, HasSubstr("for 1999 ms only"));
  EXPECT_FALSE(Judge(Silent(), std::vector{Other({moment})}, kNow).dead);
}

TEST(Verdict, AMasterThatItsSlaveHearsIsNotDead) {
  const auto verdict = Judge(Silent(kDeadAfterMs, SlaveSays::kHearsIt), std::vector{Other({Silent()})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("so it lives"));
}

TEST(Verdict, AMasterOfWhichItsSlaveSaysNothingIsNotDead) {
  const auto verdict = Judge(Silent(kDeadAfterMs, SlaveSays::kUnknown), std::vector{Other({Silent()})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("does not say that it has lost it"));
}

TEST(Verdict, AMasterThatAnotherProcessReachesIsNotDead) {
  const auto verdict = Judge(Silent(), std::vector{Other({Silent()}), Other({})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("bob@ops2 reaches it"));
}

TEST(Verdict, AMasterWhoseSlaveAnotherProcessSeesReceivingIsNotDead) {
  const auto verdict = Judge(Silent(), std::vector{Other({Silent(kDeadAfterMs, SlaveSays::kHearsIt)})}, kNow);
  EXPECT_FALSE(verdict.dead);
  EXPECT_THAT(verdict.why, HasSubstr("by what it sees"));
}

TEST(Verdict, WithoutASecondObserverNobodyIsDead) {
  EXPECT_FALSE(Judge(Silent(), {}, kNow).dead);
  EXPECT_THAT(Judge(Silent(), {}, kNow).why, HasSubstr("no second observer"));
  // A report from long ago, from before the first look, or of another version does not count.
  EXPECT_FALSE(Judge(Silent(), std::vector{Other({Silent()}, kNow - kFreshMs - 1)}, kNow).dead);
  Member new_one = Other({});
  new_one.says = nlohmann::json();
  EXPECT_FALSE(Judge(Silent(), std::vector{new_one}, kNow).dead);
  new_one.says = {{"silent", "all"}};
  EXPECT_FALSE(Judge(Silent(), std::vector{new_one}, kNow).dead);
}

TEST(Verdict, WhatAnotherProcessSaysIsReadBackAsItWasSaid) {
  const auto read = operate::SilenceFromJson(operate::ToJson(Silent(77, SlaveSays::kHearsIt)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->master, Silent().master);
  EXPECT_EQ(read->error, "refused");
  EXPECT_EQ(read->for_ms, 77u);
  EXPECT_EQ(read->slave, SlaveSays::kHearsIt);
  EXPECT_EQ(read->slave_says, "slave's words");
  EXPECT_EQ(read->lost_ms, operate::kLostForMs);
  for (const char* const other :
       {"3", "{}", R"({"master":"a"})", R"({"master":7,"for_ms":1})", R"({"master":"a","for_ms":-1})"}) {
    EXPECT_FALSE(operate::SilenceFromJson(nlohmann::json::parse(other))) << other;
  }
}

}  // namespace
}  // namespace kvstore::testing
