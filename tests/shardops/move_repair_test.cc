#include "shardops/move_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shardops/move.h"
#include "tests/shardops/page_commands.h"
#include "tests/shardops/stopped_move_fixture.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"

/// The record of a move that is under way cannot be read, and an operator does what docs/runbook.md says.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::FinishMove;
using shardops::LoadMoves;
using shardops::MovePairs;
using ::testing::HasSubstr;

constexpr char kSection[] = "## The record of a move cannot be read";

class MoveRepairTest : public StoppedMoveTest {
 protected:
  std::string Path() { return first_.fleet().root + "/moves/mod-0-3"; }
  /// Begins a move of kRows whose process dies at this point, and damages its record.
  void DamageAt(std::string_view point, const shardops::Pair& to) {
    MoveUntil(point, to);
    ASSERT_OK(first_.fleet().zookeeper.Set(Path(), "{", -1));
  }
  MovePairs Pairs() const { return {.from = first_.hosts(), .to = second_.hosts()}; }

  /// Returns the commands of the page's section, with the test's hosts in place of those of `./dev up`.
  std::vector<std::vector<std::string>> CommandsOfThePage() const {
    return PageCommands(KV_SOURCE_DIR "/docs/runbook.md", kSection,
                        {{"127.0.0.1:13306", first_.host_a().ToString()},
                         {"127.0.0.1:13307", first_.host_b().ToString()},
                         {"127.0.0.1:13316", second_.host_a().ToString()},
                         {"127.0.0.1:13317", second_.host_b().ToString()}});
  }

  /// Runs the page's commands in their order. The first one shows the alarm; the others succeed.
  void FollowThePage() {
    const auto commands = CommandsOfThePage();
    ASSERT_GE(commands.size(), 4u) << "the page has no commands under " << kSection;
    bool alarm = true;
    for (const auto& command : commands) {
      SCOPED_TRACE(::testing::PrintToString(command));
      Output output;
      // Slaves may still be applying the last changes.
      EXPECT_TRUE(Eventually([&] {
        output = Kv(command);
        return output.code == (alarm ? 1 : 0);
      })) << output.out
          << output.err;
      if (alarm) {
        EXPECT_THAT(output.err, HasSubstr(Path()));
      }
      alarm = false;
    }
  }
};

TEST_F(MoveRepairTest, ThePageIsFollowedWhereverTheMoveWasStopped) {
  for (const char* const point : {"move.begin", "move.copied", "move.following", "move.verified",
                                  "move.frozen", "move.applied", "move.published"}) {
    SCOPED_TRACE(point);
    DamageAt(point, second_.hosts());
    FollowThePage();
    const bool moved = std::string_view(point) == "move.published";
    EXPECT_EQ(HomeOf(kRows), moved ? second_.hosts() : first_.hosts());
    ASSERT_OK_AND_ASSIGN(const auto operations, first_.fleet().ledger->List());
    EXPECT_TRUE(operations.empty());
    ASSERT_OK_AND_ASSIGN(const auto moves, LoadMoves(first_.fleet()));
    EXPECT_TRUE(moves.damaged.empty());
    EXPECT_EQ(moves.known.size(), moved ? 1u : 0u) << "what has moved has old tables";
    ExpectAll();
    EXPECT_OK(Put(0));
    ExpectInOrder();
  }
  // Everything works again: the shards move back, and their old tables are removed.
  EXPECT_OK(Move(kRows, first_.hosts(), {.hold_writes = true}));
  EXPECT_OK(FinishMove(first_.fleet(), kRows));
  EXPECT_EQ(Databases(second_.a(), "mod%"), "");
  ExpectAll();
}

TEST_F(MoveRepairTest, OldTablesOfAnEarlierMoveAreFoundOnTheHosts) {
  ASSERT_OK(MoveThere(kRows));
  DamageAt("move.frozen", first_.hosts());
  ASSERT_OK(CancelMove(first_.fleet(), kRows, MovePairs{.from = second_.hosts(), .to = first_.hosts()}));
  EXPECT_EQ(HomeOf(kRows), second_.hosts());
  EXPECT_THAT(Databases(first_.a(), "mod00000%"), HasSubstr("_moved"));
  ExpectAll();
  EXPECT_OK(FinishMove(first_.fleet(), kRows));
  EXPECT_EQ(Databases(first_.a(), "mod0000_\\_moved"), "");
}

TEST_F(MoveRepairTest, ItIsRefusedUnlessTheLedgerNamesTheseHosts) {
  shardops::FleetOperator& fleet = first_.fleet();
  const auto no = StatusCode::kFailedPrecondition;
  EXPECT_THAT(CancelMove(fleet, kRows, Pairs()), FailsWith(StatusCode::kNotFound, "no move"));
  DamageAt("move.frozen", second_.hosts());
  const std::string there = Databases(second_.a(), "mod%");

  EXPECT_THAT(CancelMove(fleet, kRows), FailsWith(no, Path()));
  EXPECT_THAT(CancelMove(fleet, kRows, MovePairs{.from = second_.hosts(), .to = first_.hosts()}),
              FailsWith(no, "by the ledger"));
  EXPECT_THAT(CancelMove(fleet, kRows,
                         MovePairs{.from = first_.hosts(), .to = {second_.host_a(), Host{"127.0.0.1", 1}}}),
              FailsWith(no, "by the ledger"));
  EXPECT_THAT(CancelMove(fleet, kIds, Pairs()), FailsWith(StatusCode::kNotFound, "no move"));
  // A second record that may be about the same shards.
  ASSERT_OK(fleet.zookeeper.Create(fleet.root + "/moves/mod-2-5", "{"));
  EXPECT_THAT(CancelMove(fleet, kRows, Pairs()), FailsWith(no, "mod-2-5"));
  ASSERT_OK(fleet.zookeeper.Delete(fleet.root + "/moves/mod-2-5"));
  EXPECT_EQ(Databases(second_.a(), "mod%"), there) << "nothing was removed";

  // The options of the command must be complete.
  const Output half = Kv({"shards", "move", "cancel", "--mod", "--range", "0-3", "--from", "a,b"});
  EXPECT_EQ(half.code, 1);
  EXPECT_THAT(half.err, HasSubstr("to: is missing; --from and --to are given together"));
  ASSERT_OK(CancelMove(fleet, kRows, Pairs()));

  // A move whose record can be read needs no names of hosts.
  SetFailPointHook([](std::string_view name) {
    if (name == "move.copied") throw Died();
  });
  EXPECT_THROW(MoveThere(kRows).IgnoreError(), Died);
  SetFailPointHook(nullptr);
  EXPECT_THAT(CancelMove(fleet, kRows, Pairs()), FailsWith(no, "leave out --from and --to"));
  ASSERT_OK(CancelMove(fleet, kRows));

  // Without an operation in the ledger nothing is under way.
  ASSERT_OK(MoveThere(kRows));
  ASSERT_OK(fleet.zookeeper.Set(Path(), "{", -1));
  EXPECT_THAT(CancelMove(fleet, kRows, Pairs()), FailsWith(no, "no such move is under way"));
  ExpectAll();
}

}  // namespace
}  // namespace kvstore::testing
