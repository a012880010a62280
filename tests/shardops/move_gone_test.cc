#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "shardops/move.h"
#include "tests/shardops/page_commands.h"
#include "tests/shardops/stopped_move_fixture.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"

/// The hosts that shards were to move to never come back: the operator ends the move without them.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::FinishMove;
using shardops::LoadMoves;
using shardops::Maps;
using shardops::MoveRange;
using shardops::Pair;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kSection[] = "## The new hosts of a move are gone for good";

class MoveGoneTest : public StoppedMoveTest {
 protected:
  MoveGoneTest() {
    first_.fleet().report = [this](const std::string& text) { reported_ += text + "\n"; };
  }

  void ExpectUsable() {
    ExpectAll();
    for (int row = 0; row < kWritten; ++row) EXPECT_OK(Put(row)) << row;
  }
  void Lose(ServerPair& pair) {
    pair.a().Kill();
    pair.b().Kill();
  }
  absl::Status CancelWithout(const Pair& gone) {
    return CancelMove(first_.fleet(), kRows, std::nullopt, gone);
  }
  /// Gives shards to a pair in the map, as the switch of a move does, or an operator who edits it.
  void Assign(const MoveRange& shards, const Pair& to) {
    shardops::FleetOperator& fleet = first_.fleet();
    ASSERT_OK_AND_ASSIGN(const Maps maps, Maps::Load(fleet.zookeeper, fleet.root));
    ASSERT_OK_AND_ASSIGN(const Held held, fleet.ledger->BeginOver({.what = "assign"}));
    EXPECT_OK(maps.Assign(*fleet.ledger, held, shards.space, shards.first, shards.last, to));
  }
  void ExpectEnded() {
    ASSERT_OK_AND_ASSIGN(const auto operations, first_.fleet().ledger->List());
    EXPECT_TRUE(operations.empty());
    ASSERT_OK_AND_ASSIGN(const auto moves, LoadMoves(first_.fleet()));
    EXPECT_TRUE(moves.known.empty());
  }
  std::vector<std::string> StatusProblems() {
    const auto found = shardops::CheckDatabases(first_.fleet());
    EXPECT_OK(found);
    return found.ok() ? found->problems : std::vector<std::string>();
  }
  /// Whether `kv shards status` names a problem that begins with one text and has another.
  bool IsNamed(const std::string& begin, const std::string& part) {
    const auto problems = StatusProblems();
    return std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
      return problem.starts_with(begin) && problem.find(part) != std::string::npos;
    });
  }

  std::string reported_;
};

TEST_F(MoveGoneTest, AtEachStepTheMoveEndsWithoutTheHostsThatAreGone) {
  int number = 3;
  for (const char* const point :
       {"move.begin", "move.copied", "move.following", "move.verified", "move.frozen", "move.applied"}) {
    SCOPED_TRACE(point);
    ServerPair lost(number++);
    MoveUntil(point, lost.hosts());
    Lose(lost);
    const absl::Status plain = CancelMove(first_.fleet(), kRows);
    EXPECT_THAT(plain, FailsWith(StatusCode::kUnavailable, "kv shards move cancel --mod --range 0-3 --gone " +
                                                               lost.host_a().ToString() + "," +
                                                               lost.host_b().ToString()));
    EXPECT_THAT(Move(kRows, lost.hosts()), FailsWith(StatusCode::kUnavailable, "--gone"));
    ASSERT_OK(CancelWithout(lost.hosts()));
    EXPECT_EQ(HomeOf(kRows), first_.hosts());
    ExpectEnded();
    ExpectUsable();
    ExpectInOrder();
    EXPECT_THAT(CancelWithout(lost.hosts()), FailsWith(StatusCode::kNotFound, "no move"));
  }
  // Nothing of it is in the way of what comes next.
  EXPECT_OK(Promote(first_.fleet(), first_.host_b(), {}).status());
  PrepareForLoad(first_.b(), second_.a());
  EXPECT_TRUE(Eventually([&] { return MoveThere(kRows).ok(); }));
  ExpectUsable();
}

TEST_F(MoveGoneTest, WithoutAnEarlierCancelItOpensTheShardsToo) {
  MoveUntil("move.applied", second_.hosts());
  Lose(second_);
  SetFailPointHook([](std::string_view name) {
    if (name == "move.left") throw Died();
  });
  EXPECT_THROW(CancelWithout(second_.hosts()).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  ASSERT_OK(CancelWithout(second_.hosts())) << "given again";
  ExpectEnded();
  ExpectUsable();
}

TEST_F(MoveGoneTest, HostsThatAnswerAreNotGone) {
  const auto no = StatusCode::kFailedPrecondition;
  MoveUntil("move.verified", second_.hosts());
  EXPECT_THAT(CancelWithout(second_.hosts()), FailsWith(no, "leave out --gone"));
  EXPECT_THAT(CancelWithout(first_.hosts()), FailsWith(no, "goes to " + second_.host_a().ToString()));
  EXPECT_THAT(CancelWithout({second_.host_a(), Host{"127.0.0.1", 1}}), FailsWith(no, "nothing was changed"));
  EXPECT_EQ(first_.fleet().ledger->List()->size(), 1u);
  EXPECT_EQ(LoadMoves(first_.fleet())->known.size(), 1u);
  // The new master alone is gone. No map has the pair, so that its slave cannot take its place.
  second_.a().Kill();
  reported_.clear();
  EXPECT_OK(CancelWithout(second_.hosts()));
  EXPECT_THAT(reported_, HasSubstr(second_.host_b().ToString() + ": answers, but"));
  ExpectEnded();
  ExpectUsable();
  const std::string copy = second_.host_b().ToString() + ": database mod00000";
  EXPECT_TRUE(Eventually([&] { return IsNamed(copy, "given up"); }));
}

TEST_F(MoveGoneTest, ASlaveThatTheMapsHaveTakesTheMastersPlace) {
  const MoveRange others{.space = ShardSpace::kId, .first = 0, .last = 3};
  ASSERT_OK(MoveThere(others));
  MoveUntil("move.verified", second_.hosts());
  second_.a().Kill();
  const std::string promote = "kv shards promote " + second_.host_b().ToString() + " --emergency";
  EXPECT_THAT(CancelWithout(second_.hosts()), FailsWith(StatusCode::kFailedPrecondition, promote));
  EXPECT_OK(
      Promote(first_.fleet(), second_.host_b(), {.emergency = true, .accept_loss = 1'000'000}).status());
  EXPECT_THAT(CancelWithout(second_.hosts()), FailsWith(StatusCode::kFailedPrecondition, "leave out --gone"));
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(HomeOf(others).master, second_.host_b());
  EXPECT_EQ(Databases(second_.b(), "mod%"), "");
  ExpectUsable();
}

TEST_F(MoveGoneTest, ShardsThatHaveMovedThereAreNotGivenUp) {
  // Two of four shards were switched before the process and the new hosts were lost.
  MoveUntil("move.applied", second_.hosts());
  Assign({.space = ShardSpace::kMod, .first = 0, .last = 1}, second_.hosts());
  Lose(second_);
  const absl::Status refused = CancelWithout(second_.hosts());
  EXPECT_THAT(refused, FailsWith(StatusCode::kFailedPrecondition, "shards mod 0-1 have moved"));
  EXPECT_THAT(refused, FailsWith(StatusCode::kFailedPrecondition, "mod00000_moved"));
  EXPECT_THAT(reported_, HasSubstr("shards mod 2-3 are used at " + first_.host_a().ToString()));
  EXPECT_EQ(LoadMoves(first_.fleet())->known.size(), 1u);
  EXPECT_EQ(first_.fleet().ledger->List()->size(), 1u);
  // The runbook says so: the map names the old pair again, and the command then puts the old tables back.
  Assign({.space = ShardSpace::kMod, .first = 0, .last = 1}, first_.hosts());
  ASSERT_OK(CancelWithout(second_.hosts()));
  ExpectEnded();
  // The store has yet to see the map.
  EXPECT_TRUE(Eventually([&] {
    for (int row = 0; row < kWritten; ++row) {
      if (!store_->GetRow("events", std::to_string(row), {}).ok()) return false;
    }
    return true;
  }));
  ExpectUsable();
  ExpectInOrder();
}

TEST_F(MoveGoneTest, WhatLostHostsHaveIsNamedIfTheyComeBack) {
  MoveUntil("move.verified", second_.hosts());
  Lose(second_);
  ASSERT_OK(CancelWithout(second_.hosts()));
  EXPECT_THAT(StatusProblems(), IsEmpty());
  second_.a().Start();
  second_.b().Start();
  const std::string a = second_.host_a().ToString();
  for (const Host& host : {second_.host_a(), second_.host_b()}) {
    EXPECT_TRUE(Eventually([&] { return IsNamed(host.ToString() + ": database mod00003", "given up"); }))
        << host.ToString();
  }
  if (OnMySql()) {
    // A server that was started again gets nothing more; one that was cut off meanwhile does. The login
    // stands for that.
    second_.a().Run("START SLAVE IO_THREAD USER = 'repl' PASSWORD = 'repl' FOR CHANNEL 'kvstore_move'");
    EXPECT_TRUE(Eventually([&] {
      return IsNamed(a + ": replicates from " + first_.host_a().ToString(),
                     "STOP REPLICA FOR CHANNEL 'kvstore_move'");
    }));
    second_.a().Run("STOP REPLICA FOR CHANNEL 'kvstore_move'");
  } else {
    EXPECT_TRUE(Eventually(
        [&] { return IsNamed(a + ": replicates from " + first_.host_a().ToString(), "STOP ALL SLAVES"); }));
    second_.a().Run("STOP ALL SLAVES");
  }
  EXPECT_THAT(StatusProblems(), Not(Contains(HasSubstr("replicates from"))));
  // Clients use the shards where they were.
  ExpectUsable();
  EXPECT_EQ(HomeOf(kRows), first_.hosts());
}

TEST_F(MoveGoneTest, OldTablesStayWhileTheNewHomeDoesNotAnswer) {
  ASSERT_OK(MoveThere(kRows));
  Lose(second_);
  EXPECT_THAT(FinishMove(first_.fleet(), kRows), FailsWith(StatusCode::kUnavailable, "all that is left"));
  EXPECT_EQ(Databases(first_.a(), "mod00000%"), "mod00000_moved\n");
  EXPECT_EQ(LoadMoves(first_.fleet())->known.size(), 1u);
}

TEST_F(MoveGoneTest, AMoveIsFinishedWithoutOldHostsThatAreGone) {
  ServerPair third(3);
  ASSERT_OK(MoveThere(kRows));
  ASSERT_OK(Move(kRows, third.hosts(), {.hold_writes = true}));
  // The first pair has old tables, and so has the second.
  EXPECT_THAT(FinishMove(first_.fleet(), kRows, second_.hosts()),
              FailsWith(StatusCode::kFailedPrecondition, "answers: leave out --gone"));
  EXPECT_THAT(FinishMove(first_.fleet(), kRows, third.hosts()),
              FailsWith(StatusCode::kFailedPrecondition, "nothing was changed"));
  Lose(second_);
  EXPECT_THAT(FinishMove(first_.fleet(), kRows),
              FailsWith(StatusCode::kUnavailable,
                        "kv shards move finish --mod --range 0-3 --gone " + second_.host_a().ToString()));
  EXPECT_EQ(LoadMoves(first_.fleet())->known.size(), 1u);
  EXPECT_OK(FinishMove(first_.fleet(), kRows, second_.hosts()));
  ExpectEnded();
  EXPECT_EQ(Databases(first_.a(), "mod0000_\\_moved"), "");
  ExpectUsable();
}

TEST_F(MoveGoneTest, ThePageIsFollowed) {
  MoveUntil("move.frozen", second_.hosts());
  Lose(second_);
  const auto commands = PageCommands(KV_SOURCE_DIR "/docs/runbook.md", kSection,
                                     {{"127.0.0.1:13306", first_.host_a().ToString()},
                                      {"127.0.0.1:13307", first_.host_b().ToString()},
                                      {"127.0.0.1:13316", second_.host_a().ToString()},
                                      {"127.0.0.1:13317", second_.host_b().ToString()}});
  ASSERT_GE(commands.size(), 4u) << "the page has no commands under " << kSection;
  bool alarm = true;
  for (const auto& command : commands) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Output output = Kv(command);
    EXPECT_EQ(output.code, alarm ? 1 : 0) << output.out << output.err;
    if (alarm) {
      EXPECT_THAT(output.err, HasSubstr("is not ended"));
    }
    alarm = false;
  }
  ExpectEnded();
  ExpectUsable();
}

}  // namespace
}  // namespace kvstore::testing
