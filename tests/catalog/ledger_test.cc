#include "catalog/ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/process.h"
#include "catalog/ledger_json.h"
#include "catalog/zookeeper_ledger.h"
#include "tests/catalog/ledger_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;

// ---- claims ----

TEST(Claim, ModesGoTogetherOrNot) {
  const auto conflict = [](ClaimMode one, ClaimMode other) {
    const bool result = Claim::Dataset("a", one).ConflictsWith(Claim::Dataset("a", other));
    EXPECT_EQ(result, Claim::Dataset("a", other).ConflictsWith(Claim::Dataset("a", one)));
    return result;
  };
  EXPECT_FALSE(conflict(kShared, kShared));
  EXPECT_FALSE(conflict(kShared, kUpdate));
  EXPECT_TRUE(conflict(kUpdate, kUpdate));
  EXPECT_TRUE(conflict(kShared, kExclusive));
  EXPECT_TRUE(conflict(kUpdate, kExclusive));
  EXPECT_TRUE(conflict(kExclusive, kExclusive));
}

TEST(Claim, OnlyWhatOverlapsConflicts) {
  const auto shards = [](ShardSpace space, uint32_t first, uint32_t last) {
    return Claim::Shards(space, first, last, kExclusive);
  };
  EXPECT_TRUE(shards(ShardSpace::kId, 0, 7).ConflictsWith(shards(ShardSpace::kId, 7, 9)));
  EXPECT_FALSE(shards(ShardSpace::kId, 0, 7).ConflictsWith(shards(ShardSpace::kId, 8, 9)));
  EXPECT_FALSE(shards(ShardSpace::kId, 0, 7).ConflictsWith(shards(ShardSpace::kMod, 0, 7)));
  EXPECT_FALSE(shards(ShardSpace::kId, 0, 7).ConflictsWith(Claim::Homes(ShardSpace::kId, 0, 7, kExclusive)));
  EXPECT_TRUE(Claim::Homes(ShardSpace::kMod, 3, 3, kShared)
                  .ConflictsWith(Claim::Homes(ShardSpace::kMod, 0, 7, kExclusive)));
  EXPECT_FALSE(Claim::Dataset("a", kExclusive).ConflictsWith(Claim::Dataset("b", kExclusive)));
  EXPECT_FALSE(Claim::Dataset("a", kExclusive).ConflictsWith(Claim::Host("a", kExclusive)));
  EXPECT_TRUE(Claim::Host("", kExclusive).ConflictsWith(Claim::Host("a", kShared)));
}

TEST(OperationJson, Golden) {
  const Operation operation{
      .what = "open shards db 4-7",
      .who = "ann@ops1, process 4711",
      .since_ms = 1'700'000'000'000,
      .lasting = true,
      .yields = true,
      .go_on = "kv shards open",
      .process = "p",
      .claims = {Claim::Dataset("events", kUpdate), Claim::Shards(ShardSpace::kId, 4, 7, kExclusive),
                 Claim::Homes(ShardSpace::kMod, 0, 7, kShared), Claim::Host("MySQL001A", kShared)}};
  constexpr char kGolden[] =
      R"({"claims":[{"dataset":"events","mode":"update"},{"mode":"exclusive","range":[4,7],"shards":"db"},)"
      R"({"homes":"mod","mode":"shared","range":[0,7]},{"host":"MySQL001A","mode":"shared"}],)"
      R"("go_on":"kv shards open","lasting":true,"process":"p","since_ms":1700000000000,)"
      R"("what":"open shards db 4-7","who":"ann@ops1, process 4711","yields":true})";
  EXPECT_EQ(OperationToJson(operation).dump(), kGolden);
  ASSERT_OK_AND_ASSIGN(const Operation read, DecodeOperation(kGolden));
  EXPECT_EQ(OperationToJson(read), OperationToJson(operation));
  EXPECT_EQ(read.claims, operation.claims);
  EXPECT_FALSE(DecodeOperation("{").ok());
  EXPECT_FALSE(DecodeOperation(R"({"what": "x", "claims": [{"mode": "shared", "planet": "mars"}]})").ok());
}

// ---- both ledgers ----

/// A ledger as two processes see it; one in memory is used by two threads of one process.
class LedgerTest : public ::testing::TestWithParam<const char*> {
 protected:
  LedgerTest() {
    if (std::string_view(GetParam()) == "memory") {
      memory_ = std::make_unique<MemoryLedger>();
      return;
    }
    std::string root = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    root = "/" + root.substr(0, root.find('/'));
    for (auto& ledger : zookeeper_) {
      ledger = std::make_unique<ZooKeeperLedger>(Options(Server().address()), root);
    }
  }
  Ledger& one() { return memory_ ? static_cast<Ledger&>(*memory_) : *zookeeper_[0]; }
  Ledger& two() { return memory_ ? static_cast<Ledger&>(*memory_) : *zookeeper_[1]; }

 private:
  std::unique_ptr<MemoryLedger> memory_;
  std::array<std::unique_ptr<ZooKeeperLedger>, 2> zookeeper_;
};

INSTANTIATE_TEST_SUITE_P(Both, LedgerTest, ::testing::Values("memory", "zookeeper"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(LedgerTest, WhoComesSecondIsToldWhoHasWhatSinceWhenAndHowToGoOn) {
  ASSERT_OK_AND_ASSIGN(
      Held open, one().Begin(Of("open shards db 4-7", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})));
  const auto refused = two().Begin(
      Of("create dataset 'pins'", {Claim::Shards(ShardSpace::kId, 0, Claim::kLastShard, kShared)}));
  EXPECT_THAT(refused,
              FailsWith(kRefused, "create dataset 'pins': cannot begin now: 'open shards db 4-7', of "));
  EXPECT_THAT(refused, FailsWith(kRefused, fmt::format("process {}, since 20", ::getpid())));
  EXPECT_THAT(refused, FailsWith(kRefused, "has shards db 4-7"));
  EXPECT_THAT(refused, FailsWith(kRefused, "kv shards release " + open.id()));
  EXPECT_TRUE(EndsByItself(refused.status()));
  // Operations that do not overlap can begin.
  ASSERT_OK_AND_ASSIGN(
      Held more, two().Begin(Of("open shards db 8-9", {Claim::Shards(ShardSpace::kId, 8, 9, kExclusive)})));
  EXPECT_EQ(one().List()->size(), 2u);
  EXPECT_OK(open.Check());
  EXPECT_OK(open.End());
  EXPECT_THAT(open.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(more.End());
  EXPECT_OK(
      two()
          .Begin(Of("create dataset 'pins'", {Claim::Shards(ShardSpace::kId, 0, Claim::kLastShard, kShared)}))
          .status());
  // The operation ended when its handle was destroyed.
  EXPECT_TRUE(one().List()->empty());
}

TEST_P(LedgerTest, ALastingOneIsHeldUntilItIsEndedAndTakenOverWhenItIsBegunAgain) {
  std::string id;
  {
    ASSERT_OK_AND_ASSIGN(const Held hold,
                         one().Begin(Lasting("migrate", {Claim::Dataset("events", kUpdate)})));
    EXPECT_FALSE(hold.taken_over());
    id = hold.id();
  }
  const auto refused = two().Begin(Of("drop", {Claim::Dataset("events", kExclusive)}));
  EXPECT_THAT(refused, FailsWith(kRefused, "lasts until it is finished or given up: kv give it up"));
  EXPECT_FALSE(EndsByItself(refused.status()));
  EXPECT_OK(two().Begin(Of("purge", {Claim::Dataset("events", kShared)})).status());
  // Another process takes the operation over, with more claims.
  ASSERT_OK_AND_ASSIGN(Held again,
                       two().Begin(Lasting("migrate", {Claim::Dataset("events", kUpdate),
                                                       Claim::Shards(ShardSpace::kMod, 0, 7, kShared)})));
  EXPECT_TRUE(again.taken_over());
  EXPECT_EQ(again.before(), id);
  EXPECT_NE(again.id(), id);
  EXPECT_THAT(one().Begin(Of("open", {Claim::Shards(ShardSpace::kMod, 7, 7, kExclusive)})),
              FailsWith(kRefused, "migrate"));
  EXPECT_OK(one().EndLasting("another"));
  EXPECT_EQ(two().List()->size(), 1u);
  EXPECT_OK(one().EndLasting("migrate"));
  EXPECT_TRUE(two().List()->empty());
  EXPECT_OK(two().Begin(Of("drop", {Claim::Dataset("events", kExclusive)})).status());
}

TEST_P(LedgerTest, OneThatMustBeNewTakesNothingOver) {
  Operation wanted = Lasting("migrate", {Claim::Dataset("events", kUpdate)});
  wanted.is_new = true;
  ASSERT_OK_AND_ASSIGN(Held first, one().Begin(wanted));
  wanted.claims = {Claim::Dataset("events", kUpdate), Claim::Shards(ShardSpace::kMod, 0, 7, kShared)};
  EXPECT_THAT(two().Begin(wanted), FailsWith(absl::StatusCode::kAlreadyExists, "is held already"));
  EXPECT_OK(first.Check());
  ASSERT_OK_AND_ASSIGN(const auto held, two().List());
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held.front().claims.size(), 1u) << "as it was begun";
  EXPECT_OK(first.End());
  ASSERT_OK_AND_ASSIGN(Held second, two().Begin(wanted));
  EXPECT_FALSE(second.taken_over());
  EXPECT_OK(second.End());
}

TEST_P(LedgerTest, WhoHadALastingOneBeforeItWasTakenOverDoesNotHoldItAnyMore) {
  const Operation move = Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)});
  ASSERT_OK_AND_ASSIGN(Held first, one().Begin(move));
  const uint64_t since_ms = one().List()->front().since_ms;
  ASSERT_OK_AND_ASSIGN(const Held second, two().Begin(move));
  EXPECT_THAT(first.Check(), FailsWith(absl::StatusCode::kAborted, "somebody has begun it again"));
  EXPECT_OK(first.End());
  EXPECT_OK(second.Check());
  ASSERT_EQ(one().List()->size(), 1u);
  EXPECT_EQ(one().List()->front().id, second.id());
  EXPECT_EQ(one().List()->front().since_ms, since_ms);
  EXPECT_THAT(one().Begin(Of("open", {Claim::Homes(ShardSpace::kId, 3, 3, kExclusive)})),
              FailsWith(kRefused, "'move'"));
  EXPECT_OK(one().EndLasting("move"));
}

TEST_P(LedgerTest, OneThatYieldsIsNotWaitedForAndLearnsOfIt) {
  Operation purge = Of("purge", {Claim::Dataset("events", kShared)});
  purge.yields = true;
  ASSERT_OK_AND_ASSIGN(const Held hold, one().Begin(purge));
  EXPECT_OK(hold.Check());
  ASSERT_OK_AND_ASSIGN(Held drop, two().Begin(Of("drop", {Claim::Dataset("events", kExclusive)})));
  EXPECT_THAT(hold.Check(), FailsWith(absl::StatusCode::kAborted, "took its claims away"));
  // The operation that lost its claims cannot begin again before the drop has ended.
  EXPECT_THAT(one().Begin(purge), FailsWith(kRefused, "'drop'"));
  EXPECT_OK(drop.End());
  EXPECT_OK(one().Begin(purge).status());
}

TEST_P(LedgerTest, WhatMustNotWaitBeginsOverOthers) {
  ASSERT_OK_AND_ASSIGN(const Held replace, one().Begin(Of("replace", {Claim::Host("a", kExclusive)})));
  ASSERT_OK_AND_ASSIGN(const Held move, one().Begin(Lasting("move", {Claim::Host("b", kShared)})));
  const Operation emergency =
      Of("promote b --emergency", {Claim::Host("a", kExclusive), Claim::Host("b", kExclusive)});
  EXPECT_THAT(two().Begin(emergency), FailsWith(kRefused, "'move'"));
  ASSERT_OK_AND_ASSIGN(const Held hold, two().BeginOver(emergency));
  EXPECT_THAT(replace.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_OK(move.Check());
  EXPECT_OK(one().EndLasting("move"));
}

TEST_P(LedgerTest, AProcessThatIsGoneHasNothingAnyMore) {
  // The process has ended, but its session may not have expired yet.
  const pid_t child = ::fork();
  if (child == 0) ::pause();
  ASSERT_GT(child, 0);
  std::string identity = ProcessIdentity();
  ASSERT_FALSE(identity.empty());
  EXPECT_FALSE(ProcessHasEnded(identity));
  EXPECT_FALSE(ProcessHasEnded("elsewhere/" + identity));
  EXPECT_FALSE(ProcessHasEnded(""));
  // The same process number, but a process that started at another time.
  EXPECT_TRUE(ProcessHasEnded(identity + "0"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const size_t pid = identity.rfind(std::to_string(::getpid()));
  identity.replace(pid, std::to_string(::getpid()).size(), std::to_string(child));
  EXPECT_TRUE(ProcessHasEnded(identity));
}

TEST_P(LedgerTest, ReleaseTakesOnlyWhatNobodyIsAtUnlessForced) {
  ASSERT_OK_AND_ASSIGN(const Held open,
                       one().Begin(Of("open", {Claim::Shards(ShardSpace::kId, 4, 7, kExclusive)})));
  ASSERT_OK_AND_ASSIGN(const Held move,
                       one().Begin(Lasting("move", {Claim::Homes(ShardSpace::kId, 0, 3, kExclusive)})));
  EXPECT_THAT(two().Release("none", false), FailsWith(absl::StatusCode::kNotFound, "kv shards operations"));
  EXPECT_THAT(two().Release(open.id(), false), FailsWith(kRefused, "may still be at work"));
  EXPECT_THAT(two().Release(move.id(), false), FailsWith(kRefused, "outlives its process: kv give it up"));
  EXPECT_EQ(two().Release(open.id(), true)->what, "open");
  EXPECT_EQ(two().Release(move.id(), true)->what, "move");
  EXPECT_THAT(open.Check(), FailsWith(absl::StatusCode::kAborted, ""));
  EXPECT_TRUE(one().List()->empty());
}

TEST_P(LedgerTest, ThreadsThatBeginTheSameAreAtItOneAfterTheOther) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 10;
  std::atomic<int> inside{0};
  std::atomic<int> crossed{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Ledger& ledger = t % 2 == 0 ? one() : two();
      for (int i = 0; i < kRounds;) {
        // Each operation claims a dataset that all of them claim, and one of its own.
        std::vector<Claim> claims = {Claim::Dataset("a", kExclusive)};
        claims.push_back(Claim::Dataset(fmt::format("only{}", t), kExclusive));
        auto hold = ledger.Begin(Of("work", std::move(claims)));
        if (EndsByItself(hold.status())) continue;
        ASSERT_OK(hold.status());
        if (++inside != 1) ++crossed;
        EXPECT_OK(hold->Check());
        --inside;
        ASSERT_OK(hold->End());
        ++done;
        ++i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kRounds);
  EXPECT_EQ(crossed, 0);
  EXPECT_TRUE(one().List()->empty());
}

}  // namespace
}  // namespace kvstore
