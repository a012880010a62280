#include "operate/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {
namespace {

using operate::Alarms;
using operate::Event;
using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AlarmsTest : public ::testing::Test {
 protected:
  /// Returns what people were told since the last call: "alarm a: text".
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  std::vector<std::string> told_;
  Alarms alarms_{
      [this](const Event& event) { told_.push_back(event.kind + " " + event.subject + ": " + event.text); }};
};

TEST_F(AlarmsTest, APersonIsToldOnceAndWhenItIsOver) {
  alarms_.Set("hosts", {{"a", "is 12 s behind", "page"}}, milliseconds(0));
  EXPECT_THAT(Told(), ElementsAre("alarm a: is 12 s behind"));
  // The same, with another number.
  alarms_.Set("hosts", {{"a", "is 130 s behind", "page"}}, milliseconds(0));
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(alarms_.Told().at(0).finding.text, "is 130 s behind");
  alarms_.Set("hosts", {{"b", "is 130 s behind", "page"}}, milliseconds(0));
  EXPECT_THAT(Told(), ElementsAre("alarm b: is 130 s behind", "over a: is 130 s behind"));
}

TEST_F(AlarmsTest, WhatASourceSaysInOtherWordsOfTheSameIsTheSame) {
  alarms_.Set("masters", {{"a", "does not answer: ann reaches it", ""}}, milliseconds(0),
              Alarms::Same::kSubject);
  alarms_.Set("masters", {{"a", "is dead", ""}}, milliseconds(0), Alarms::Same::kSubject);
  EXPECT_THAT(Told(), ElementsAre("alarm a: does not answer: ann reaches it"));
  EXPECT_EQ(alarms_.Told().at(0).finding.text, "is dead");
}

TEST_F(AlarmsTest, WhatPassesSoonIsToldToNobody) {
  alarms_.Set("hosts", {{"a", "is behind", ""}}, hours(1));
  alarms_.Set("hosts", {{"a", "is behind", ""}}, hours(1));
  alarms_.Set("hosts", {}, hours(1));
  EXPECT_THAT(Told(), IsEmpty());
  alarms_.Set("hosts", {{"a", "is behind", ""}}, milliseconds(0));
  EXPECT_THAT(Told(), ElementsAre("alarm a: is behind"));
}

TEST_F(AlarmsTest, ASourceSaysNothingAboutWhatOthersHaveFound) {
  alarms_.Set("hosts", {{"a", "is behind", ""}}, milliseconds(0));
  alarms_.Set("disk", {{"a", "is full", ""}}, milliseconds(0));
  alarms_.Set("disk", {}, milliseconds(0));
  EXPECT_THAT(Told(), ElementsAre("alarm a: is behind", "alarm a: is full", "over a: is full"));
  EXPECT_EQ(alarms_.Told().size(), 1u);
}

TEST_F(AlarmsTest, ANewLeaderDoesNotTellAgain) {
  const ZooKeeperServer server;
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  ASSERT_OK(zookeeper.Create("/kvstore/operate/leader", ""));
  ZooKeeperStep leads{.kind = ZooKeeperStep::Kind::kCheck, .path = "/kvstore/operate/leader", .version = 0};
  ASSERT_OK(alarms_.Load(zookeeper, "/kvstore", {"hosts"}));
  alarms_.Set("hosts", {{"a", "is 3 s behind", "page"}}, milliseconds(0));
  alarms_.Set("another version's", {{"a", "is odd", ""}}, milliseconds(0));
  ASSERT_OK(alarms_.Publish(zookeeper, "/kvstore", leads));
  Told();

  Alarms next([this](const Event& event) { told_.push_back(event.kind); });
  ASSERT_OK(next.Load(zookeeper, "/kvstore", {"hosts"}));
  next.Set("hosts", {{"a", "is 4 s behind", "page"}}, milliseconds(0));
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(next.Told().at(0).finding.page, "page");
  EXPECT_EQ(next.Told().at(0).since_ms, alarms_.Told().at(0).since_ms);
  next.Set("hosts", {}, milliseconds(0));
  EXPECT_THAT(Told(), ElementsAre("over"));
  ASSERT_OK(next.Publish(zookeeper, "/kvstore", leads));
  // One that does not lead any more writes nothing over that.
  alarms_.Set("hosts", {{"b", "is behind", ""}}, milliseconds(0));
  leads.version = 1;
  EXPECT_THAT(alarms_.Publish(zookeeper, "/kvstore", leads),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  ASSERT_OK_AND_ASSIGN(const auto none, Alarms::Read(zookeeper, "/kvstore"));
  EXPECT_THAT(none, IsEmpty());
}

}  // namespace
}  // namespace kvstore::testing
