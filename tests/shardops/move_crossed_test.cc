#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "shardops/fleet_check.h"
#include "shardops/freeze.h"
#include "shardops/move.h"
#include "shardops/status.h"
#include "tests/migration/migrating_store.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Moves of shards that conflict with promotions, and tables that somebody creates where shards have just
/// left.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::FinishMove;
using shardops::LoadMoves;
using shardops::MoveRange;
using shardops::Pair;
using shardops::Promote;

constexpr MoveRange kRows{.space = ShardSpace::kMod, .first = 0, .last = 3};

class CrossedMoveTest : public ::testing::Test {
 protected:
  CrossedMoveTest() : store_(first_.OpenStore(dir_.path())) {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
  }
  ~CrossedMoveTest() override { SetFailPointHook(nullptr); }

  absl::Status Move(const Pair& to) {
    return MoveShards(first_.fleet(), kRows, to, {.hold_writes = true}).status();
  }
  Pair Home() {
    return *shardops::Maps::Load(first_.fleet().zookeeper, first_.fleet().root)
                ->PairOf(ShardSpace::kMod, kRows.first);
  }
  absl::Status Put(const std::string& row) {
    const CellWrite cell{"c", "v", std::nullopt};
    return store_->PutRow("events", row, {&cell, 1}, {}).status();
  }
  bool Has(const std::string& row) {
    const auto found = store_->GetRow("events", row, {});
    EXPECT_OK(found);
    return found.ok() && !found->items.empty();
  }
  /// Takes away the claims of the move that is under way.
  void EndOperation() {
    const auto held = first_.fleet().ledger->List();
    ASSERT_OK(held);
    ASSERT_EQ(held->size(), 1u);
    EXPECT_OK(first_.fleet().ledger->Release(held->front().id, /*force=*/true));
  }
  std::unique_ptr<shardops::HostAdmin> Open(const Host& host) {
    return *shardops::HostAdmin::Open(host, first_.fleet().access);
  }

  const TempDir dir_;
  PairFleet first_;
  ServerPair second_{2};
  std::unique_ptr<Router> store_;
};

TEST_F(CrossedMoveTest, AChannelDoesNotAcknowledgeCommitsInPlaceOfTheSlave) {
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.following") throw std::runtime_error("as if the process had died");
  });
  EXPECT_THROW(Move(second_.hosts()).IgnoreError(), std::runtime_error);
  SetFailPointHook(nullptr);
  const auto clients = [&](const char* number) {
    return first_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with(number);
  };
  EXPECT_TRUE(Eventually([&] { return clients("\t1\n"); })) << "the slave alone";
  // The server that the shards move to comes back by its configuration, as a semi-synchronous slave, and runs
  // the channel by itself.
  second_.a().Kill();
  second_.a().Start();
  if (OnMySql()) {
    // A MySQL server has forgotten its login at the source.
    const auto admin = Open(second_.host_a());
    EXPECT_TRUE(Eventually([&] {
      const auto state = shardops::Channel(*admin).Read();
      return state.ok() && *state && (*state)->error.find("Invalid (empty) username") != std::string::npos;
    }));
    EXPECT_TRUE(Eventually([&] { return clients("\t1\n"); }));
    return;
  }
  ASSERT_TRUE(Eventually([&] { return clients("\t2\n"); }));
  ASSERT_OK(Open(second_.host_a())->BecomeMaster());
  EXPECT_TRUE(Eventually([&] { return clients("\t1\n"); }));
  // And it is the slave that is left: without it a commit is not acknowledged.
  EXPECT_TRUE(first_.b().Run("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'").ends_with("\tON\n"));
}

TEST_F(CrossedMoveTest, AMasterThatWasPromotedMeanwhileKeepsItsShards) {
  // The slave has not received the renames of the tables, because the master did not wait for it.
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.verified") CutOffSlave(first_.a(), first_.b());
    if (name != "move.applied") return;
    first_.a().Kill();
    EXPECT_OK(
        Promote(first_.fleet(), first_.host_b(), {.emergency = true, .accept_loss = 1'000'000}).status());
    for (int row = 0; row < 20; ++row) {
      EXPECT_TRUE(Eventually([&] { return Put(std::to_string(row)).ok(); }));
    }
  });
  const absl::Status moved = Move(second_.hosts());
  SetFailPointHook(nullptr);
  EXPECT_THAT(moved, FailsWith(StatusCode::kFailedPrecondition, "kv shards move cancel --mod --range 0-3"));
  EXPECT_EQ(Home().master, first_.host_b());
  for (int row = 0; row < 20; ++row) EXPECT_TRUE(Has(std::to_string(row))) << row;
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  for (int row = 0; row < 20; ++row) EXPECT_TRUE(Has(std::to_string(row))) << row;
  EXPECT_EQ(second_.a().Run("SHOW DATABASES LIKE 'mod%'"), "");
}

TEST_F(CrossedMoveTest, ANewHomeWhoseMasterWasReplacedMeanwhileGetsNothing) {
  // With this the maps name the new pair.
  ASSERT_OK(MoveShards(first_.fleet(), {.space = ShardSpace::kId, .first = 0, .last = 3}, second_.hosts(), {})
                .status());
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.applied") return;
    second_.a().Kill();
    EXPECT_OK(
        Promote(first_.fleet(), second_.host_b(), {.emergency = true, .accept_loss = 1'000'000}).status());
  });
  EXPECT_THAT(Move(second_.hosts()), FailsWith(StatusCode::kFailedPrecondition, "kv shards move cancel"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(Home(), first_.hosts());
  second_.b().Run("SET GLOBAL read_only = ON");
  EXPECT_THAT(CancelMove(first_.fleet(), kRows),
              FailsWith(StatusCode::kFailedPrecondition, "takes no writes, so that the copies there"));
  ASSERT_OK(Promote(first_.fleet(), second_.host_b(), {})) << "as the error says";
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  for (int row = 0; row < 20; ++row) EXPECT_OK(Put(std::to_string(row)));
}

TEST_F(CrossedMoveTest, ACopyIsNotWaitedForAnyMoreWhenItsHostsHaveOtherRoles) {
  // So that the maps name the new pair.
  ASSERT_OK(MoveShards(first_.fleet(), {.space = ShardSpace::kId, .first = 0, .last = 3}, second_.hosts(), {})
                .status());
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.following") return;
    // The copy goes on at a host that has become a slave, and whose master has nothing of it.
    CutOffSlave(second_.a(), second_.b());
    second_.a().Run("CREATE DATABASE what_the_slave_has_not");
    shardops::FleetOperator& fleet = first_.fleet();
    const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
    ASSERT_OK_AND_ASSIGN(const Held held, fleet.ledger->BeginOver({.what = "promote"}));
    EXPECT_OK(maps->Replace(*fleet.ledger, held, second_.hosts(), {second_.host_b(), second_.host_a()}));
  });
  EXPECT_THAT(Move(second_.hosts()), FailsWith(StatusCode::kFailedPrecondition, "kv shards move cancel"));
}

TEST_F(CrossedMoveTest, ShardsDoNotBeginToMoveWhileTheirOldTablesAreDropped) {
  ASSERT_OK(Move(second_.hosts()));
  absl::Status back;
  const auto report = first_.fleet().report;
  first_.fleet().report = [&](const std::string& text) {
    if (text.find("the old tables of shards mod 0-3 are gone") == std::string::npos) return;
    // The finish is not over yet: it has still to remove the record.
    back = Move(first_.hosts());
  };
  EXPECT_OK(FinishMove(first_.fleet(), kRows));
  first_.fleet().report = report;
  EXPECT_THAT(back, FailsWith(StatusCode::kFailedPrecondition, "finish the move of shards mod 0-3"));
  EXPECT_TRUE(LoadMoves(first_.fleet())->known.empty());
  EXPECT_TRUE(first_.fleet().ledger->List()->empty());
  EXPECT_OK(Move(first_.hosts()));
  EXPECT_EQ(Home(), first_.hosts());
}

TEST_F(CrossedMoveTest, TheRecordStaysUntilTheOldTablesAreDropped) {
  shardops::FleetOperator& fleet = first_.fleet();
  ASSERT_OK(Move(second_.hosts()));
  const auto old = [&] { return first_.a().Run("SHOW DATABASES LIKE 'mod00000%'"); };
  // As after a restart of the whole pair.
  first_.a().Run("SET GLOBAL read_only = 1");
  EXPECT_THAT(FinishMove(fleet, kRows), FailsWith(StatusCode::kFailedPrecondition, "takes writes"));
  EXPECT_EQ(old(), "mod00000_moved\n");
  EXPECT_EQ(LoadMoves(fleet)->known.size(), 1u);
  first_.a().Run("SET GLOBAL read_only = 0");
  EXPECT_OK(FinishMove(fleet, kRows));
  EXPECT_EQ(old(), "");

  // A slave that was replaced, and is gone, keeps nobody from finishing.
  const Pair was{first_.host_a(), Host{"127.0.0.1", 1}};
  shardops::MoveRecord moved{.range = kRows,
                             .from = was,
                             .to = second_.hosts(),
                             .state = shardops::MoveState::kMoved,
                             .old_homes = {was}};
  ASSERT_OK(SaveMove(fleet, moved));
  EXPECT_OK(FinishMove(fleet, kRows));
  EXPECT_TRUE(LoadMoves(fleet)->known.empty());
}

TEST_F(CrossedMoveTest, AHostThatLostTheMoveKeepsNoTablesAfterItsFinish) {
  shardops::FleetOperator& fleet = first_.fleet();
  ASSERT_OK(Move(second_.hosts()));
  // As if the slave had been promoted without the last that its master did: the tables have their own names.
  first_.a().Run("CREATE DATABASE mod00000; CREATE DATABASE mod00003");
  const auto there = [](const MariaDbServer& server) {
    return server.Run("SHOW DATABASES WHERE `Database` REGEXP '^mod0000[0-3]'");
  };
  const std::string moved = there(second_.a());
  const auto found = shardops::CheckFleet(fleet, {});
  ASSERT_OK(found);
  EXPECT_THAT(found->problems,
              ::testing::Contains(::testing::HasSubstr("the finish of that move drops what is left")));
  // Nothing is dropped while the shards are not whole where the map has them.
  second_.a().Run("DROP DATABASE mod00003");
  EXPECT_THAT(FinishMove(fleet, kRows), FailsWith(StatusCode::kFailedPrecondition, "has no mod00003"));
  EXPECT_NE(there(first_.a()).find("mod00000\n"), std::string::npos);
  EXPECT_EQ(LoadMoves(fleet)->known.size(), 1u);
  second_.a().Run("CREATE DATABASE mod00003");
  EXPECT_OK(FinishMove(fleet, kRows));
  EXPECT_EQ(there(first_.a()), "");
  EXPECT_EQ(there(second_.a()), moved);
}

TEST_F(CrossedMoveTest, ACopyWhoseSlaveDoesNotReplicateIsNotWaitedForForEver) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.following") return;
    CutOffSlave(second_.a(), second_.b());
    second_.a().Run("CREATE DATABASE what_the_slave_has_not");
  });
  const absl::Status moved = Move(second_.hosts());
  SetFailPointHook(nullptr);
  EXPECT_THAT(moved, FailsWith(StatusCode::kUnavailable, "does not replicate"));
  second_.b().Run("START SLAVE IO_THREAD");
  // The slave connects in its own time.
  EXPECT_TRUE(Eventually([&] { return Move(second_.hosts()).ok(); })) << "it goes on";
  EXPECT_EQ(Home(), second_.hosts());
}

TEST_F(CrossedMoveTest, ACopyWhoseOperationHasEndedIsNotWaitedForAnyMore) {
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.following") return;
    // Waiting for the slave would end otherwise, too, but later and for another reason.
    CutOffSlave(second_.a(), second_.b());
    second_.a().Run("CREATE DATABASE what_the_slave_has_not");
    EndOperation();
  });
  EXPECT_THAT(Move(second_.hosts()), FailsWith(StatusCode::kAborted, "is not held any more"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(Home(), first_.hosts());
  second_.b().Run("START SLAVE IO_THREAD");
  // The slave connects in its own time.
  EXPECT_TRUE(Eventually([&] { return Move(second_.hosts()).ok(); })) << "it goes on";
  EXPECT_EQ(Home(), second_.hosts());
}

TEST_F(CrossedMoveTest, AMoveWhoseOperationHasEndedTakesNoShardsOutOfUse) {
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.verified") EndOperation();
    EXPECT_NE(name, "move.frozen");
  });
  EXPECT_THAT(Move(second_.hosts()), FailsWith(StatusCode::kAborted, "is not held any more"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(Home(), first_.hosts());
  for (int row = 0; row < 20; ++row) EXPECT_OK(Put(std::to_string(row)));
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  EXPECT_EQ(second_.a().Run("SHOW DATABASES LIKE 'mod%'"), "");
}

TEST_F(CrossedMoveTest, NobodyMakesATableWhereShardsAreTakenOutOfUse) {
  ASSERT_TRUE(Put("before").ok());
  std::string problem;
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.frozen") return;
    try {
      first_.a().Run("CREATE TABLE mod00001.events (a INT)");
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
    // The errors of a process with the old map must not propose to create the table there.
    const CallScope scope({.deadline = CallLimits::Clock::now() + std::chrono::milliseconds(300)});
    for (int row = 0; row < 20; ++row) {
      const absl::Status status = Put(std::to_string(row));
      EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("kv shards init")));
    }
  });
  EXPECT_OK(Move(second_.hosts()));
  SetFailPointHook(nullptr);
  EXPECT_THAT(problem, ::testing::HasSubstr("Unknown database"));
  EXPECT_TRUE(Has("before"));
}

TEST_F(CrossedMoveTest, TablesThatWereMadeThereAllTheSameAreNotInTheWay) {
  for (int row = 0; row < 20; ++row) EXPECT_OK(Put(std::to_string(row)));
  const std::unique_ptr<shardops::HostAdmin> host = Open(first_.host_a());
  shardops::SkippedStatements skipped(*host, nullptr);
  ASSERT_OK(CreateMovedDatabases(*host, kRows, skipped));
  ASSERT_OK(Freeze(*host, kRows, skipped));
  const auto ghost = [&] {
    first_.a().Run("CREATE DATABASE mod00001; CREATE TABLE mod00001.events LIKE mod00001_moved.events");
  };
  ghost();
  EXPECT_OK(Freeze(*host, kRows, skipped)) << "given again";
  ghost();
  // Somebody has written to the new table. Its rows must not get lost, nor hide those of the shard's own
  // table.
  first_.a().Run("INSERT INTO mod00001.events VALUES ('ghost', 'c', 1, 'v')");
  EXPECT_THAT(Thaw(*host, kRows, skipped),
              FailsWith(StatusCode::kFailedPrecondition, "has rows that clients were told"));
  first_.a().Run("CREATE DATABASE kept; RENAME TABLE mod00001.events TO kept.events");
  EXPECT_OK(Thaw(*host, kRows, skipped));
  for (int row = 0; row < 20; ++row) EXPECT_TRUE(Has(std::to_string(row))) << row;
}

TEST_F(CrossedMoveTest, WhatIsMissingAfterAMoveBackIsToldAtOnce) {
  ASSERT_OK(Move(second_.hosts()));
  ASSERT_OK(Move(first_.hosts()));
  EXPECT_EQ(first_.a().Run("SHOW DATABASES LIKE 'mod00001_moved'"), "mod00001_moved\n")
      << "until it is finished";
  first_.a().Run("DROP TABLE mod00000.events, mod00001.events, mod00002.events, mod00003.events");
  bool missing = false;
  for (int row = 0; row < 20; ++row) {
    const auto found = store_->GetRow("events", std::to_string(row), {});
    if (found.ok()) continue;
    missing = true;
    EXPECT_THAT(found.status(), FailsWith(StatusCode::kFailedPrecondition, "kv shards init makes"));
  }
  EXPECT_TRUE(missing);
}

}  // namespace
}  // namespace kvstore::testing
