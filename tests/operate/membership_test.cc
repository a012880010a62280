#include "operate/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "catalog/zookeeper_ledger.h"
#include "operate/pair_records.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {
namespace {

using operate::Membership;

/// A process of kv operate, with a session of its own.
struct Process {
  Process(const ZooKeeperServer& server, const std::string& who)
      : zookeeper({.servers = server.address()}, nullptr), membership(zookeeper, "/kvstore", who) {}

  ZooKeeper zookeeper;
  Membership membership;
};

class MembershipTest : public ::testing::Test {
 protected:
  ZooKeeperServer server_;
  Process ann_{server_, "ann"};
  Process bob_{server_, "bob"};
};

TEST_F(MembershipTest, OneLeadsAndAllHearWhatTheOthersSay) {
  ASSERT_OK_AND_ASSIGN(const auto first, ann_.membership.Meet({{"silent", "x"}}));
  EXPECT_TRUE(first.leads);
  EXPECT_EQ(first.leader, "ann");
  EXPECT_TRUE(first.others.empty());
  ASSERT_OK_AND_ASSIGN(const auto second, bob_.membership.Meet({}));
  EXPECT_FALSE(second.leads);
  EXPECT_EQ(second.leader, "ann");
  ASSERT_EQ(second.others.size(), 1u);
  EXPECT_EQ(second.others[0].who, "ann");
  EXPECT_EQ(second.others[0].says, (nlohmann::json{{"silent", "x"}}));
  EXPECT_LE(second.others[0].said_ms, second.now_ms);
  ASSERT_OK_AND_ASSIGN(const auto third, ann_.membership.Meet({}));
  EXPECT_TRUE(third.leads);
  EXPECT_EQ(third.still_leads.version, first.still_leads.version);
  ASSERT_EQ(third.others.size(), 1u);
  EXPECT_EQ(third.others[0].who, "bob");
}

TEST_F(MembershipTest, OneThatIsBusyIsHeardAndHasSeenNothing) {
  ASSERT_OK(ann_.membership.Meet({{"silent", nlohmann::json::array()}}));
  ASSERT_OK_AND_ASSIGN(const auto before, bob_.membership.Meet({}));
  ASSERT_TRUE(Eventually([&] {
    if (!ann_.membership.SayBusy().ok()) return false;
    const auto after = bob_.membership.Meet({});
    return after.ok() && after->leader == "ann" && after->others.size() == 1 &&
           after->others[0].said_ms > before.others[0].said_ms && after->others[0].says.empty();
  }));
}

TEST_F(MembershipTest, AnotherOneLeadsWhenTheLeaderIsGone) {
  ASSERT_OK(ann_.membership.Meet({}));
  ASSERT_OK(bob_.membership.Meet({}));
  ann_.membership.Leave();
  ASSERT_OK_AND_ASSIGN(const auto next, bob_.membership.Meet({}));
  EXPECT_TRUE(next.leads);
  EXPECT_EQ(next.leader, "bob");
  // Whoever comes back does not lead.
  ASSERT_OK_AND_ASSIGN(const auto back, ann_.membership.Meet({}));
  EXPECT_FALSE(back.leads);
  EXPECT_EQ(back.leader, "bob");
}

/// A leader that was stopped, and goes on behind its successor's back.
TEST_F(MembershipTest, ALeaderThatWasReplacedCanChangeNothing) {
  ASSERT_OK_AND_ASSIGN(const auto old, ann_.membership.Meet({}));
  ZooKeeperLedger ledger(ann_.zookeeper, "/kvstore", "ann", {old.still_leads});
  const Operation operation{.what = "promote a", .claims = {Claim::Host("a", ClaimMode::kExclusive)}};
  ASSERT_OK_AND_ASSIGN(const auto begun, ledger.Begin(operation));
  EXPECT_OK(ledger.Change(begun, {}));
  EXPECT_OK(begun.Check());

  ann_.membership.Leave();
  ASSERT_OK(bob_.membership.Meet({}));
  EXPECT_THAT(ledger.Change(begun, {}),
              FailsWith(absl::StatusCode::kAborted, "another process has taken over"));
  EXPECT_THAT(begun.Check(), FailsWith(absl::StatusCode::kAborted, "another process has taken over"));
  EXPECT_THAT(ledger.Begin({.what = "promote b", .claims = {Claim::Host("b", ClaimMode::kExclusive)}}),
              FailsWith(absl::StatusCode::kAborted, "another process has taken over"));
  EXPECT_THAT(ledger.BeginOver({.what = "promote b", .claims = {Claim::Host("b", ClaimMode::kExclusive)}}),
              FailsWith(absl::StatusCode::kAborted, "another process has taken over"));

  operate::PairRecords pairs(ann_.zookeeper, "/kvstore");
  const shardops::Pair pair{{"a", 3306}, {"b", 3306}};
  EXPECT_THAT(pairs.Save(pair, {.on = true}, old.still_leads),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  ASSERT_OK_AND_ASSIGN(const auto record, pairs.Load(pair));
  EXPECT_FALSE(record.on);
}

TEST_F(MembershipTest, ARecordOfAPairIsTheSameWhicheverHostIsTheMaster) {
  operate::PairRecords pairs(ann_.zookeeper, "/kvstore");
  const shardops::Pair pair{{"a", 3306}, {"b", 3307}};
  ASSERT_OK(pairs.Save(pair, {.on = true,
                              .by = "ann",
                              .since_ms = 5,
                              .promotion = operate::PairPromotion{
                                  .from = pair.master, .to = pair.slave, .begun_ms = 7, .done = true}}));
  ASSERT_OK_AND_ASSIGN(auto record, pairs.Load({pair.slave, pair.master}));
  EXPECT_TRUE(record.on);
  EXPECT_EQ(record.by, "ann");
  EXPECT_EQ(record.since_ms, 5u);
  ASSERT_TRUE(record.promotion);
  EXPECT_EQ(record.promotion->to, pair.slave);
  EXPECT_EQ(record.promotion->from, pair.master);
  EXPECT_EQ(record.promotion->begun_ms, 7u);
  EXPECT_TRUE(record.promotion->done);
  // Somebody else has changed it meanwhile.
  ASSERT_OK(pairs.Save(pair, record));
  EXPECT_THAT(pairs.Save(pair, record), FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  ASSERT_OK_AND_ASSIGN(const auto all, pairs.LoadAll());
  EXPECT_EQ(all.size(), 1u);
  ASSERT_TRUE(all.contains("a,b:3307"));
  EXPECT_OK(all.at("a,b:3307"));
}

TEST_F(MembershipTest, ARecordThatCannotBeReadIsNamed) {
  operate::PairRecords pairs(ann_.zookeeper, "/kvstore");
  const shardops::Pair pair{{"a", 3306}, {"b", 3306}};
  for (const char* const text : {"", "[]", R"({"on": 1})", R"({"promotion": {"from": "a"}})", "\xff"}) {
    ann_.zookeeper.Delete("/kvstore/operate/pairs/a,b").IgnoreError();
    ASSERT_OK(ann_.zookeeper.Create("/kvstore/operate/pairs/a,b", text));
    EXPECT_THAT(pairs.Load(pair), FailsWith(absl::StatusCode::kDataLoss, "/kvstore/operate/pairs/a,b"))
        << text;
    ASSERT_OK_AND_ASSIGN(const auto all, pairs.LoadAll());
    EXPECT_THAT(all.at("a,b"), FailsWith(absl::StatusCode::kDataLoss, "a,b"));
  }
}

}  // namespace
}  // namespace kvstore::testing
