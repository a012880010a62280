#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "shardops/freeze.h"
#include "shardops/move.h"
#include "shardops/status.h"
#include "tests/migration/world.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Moves of shards that cross promotions, and tables that somebody makes where shards have just left.
namespace kvstore::testing {
namespace {

using absl::StatusCode;
using shardops::CancelMove;
using shardops::MoveRange;
using shardops::Pair;
using shardops::Promote;

constexpr MoveRange kRows{.mod = true, .first = 0, .last = 3};

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
    return *shardops::Maps::Load(first_.fleet().zookeeper, first_.fleet().root)->PairOf(true, kRows.first);
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
  std::unique_ptr<shardops::HostAdmin> Open(const Host& host) {
    return *shardops::HostAdmin::Open(host, first_.fleet().access);
  }

  const TempDir dir_;
  PairFleet first_;
  ServerPair second_{2};
  std::unique_ptr<Router> store_;
};

TEST_F(CrossedMoveTest, AMasterThatWasPromotedMeanwhileKeepsItsShards) {
  // Its slave has not got that the tables were renamed: the master did not wait for it.
  SetFailPointHook([&](std::string_view name) {
    if (name == "move.verified") {
      first_.a().Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
      first_.b().Run("STOP SLAVE IO_THREAD");
      EXPECT_TRUE(Eventually([&] {
        return first_.a().Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t0\n");
      }));
    }
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
  // So that the maps name the new pair.
  ASSERT_OK(MoveShards(first_.fleet(), {.mod = false, .first = 0, .last = 3}, second_.hosts(), {}).status());
  SetFailPointHook([&](std::string_view name) {
    if (name != "move.applied") return;
    second_.a().Kill();
    EXPECT_OK(
        Promote(first_.fleet(), second_.host_b(), {.emergency = true, .accept_loss = 1'000'000}).status());
  });
  EXPECT_THAT(Move(second_.hosts()), FailsWith(StatusCode::kFailedPrecondition, "kv shards move cancel"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(Home(), first_.hosts());
  ASSERT_OK(CancelMove(first_.fleet(), kRows));
  for (int row = 0; row < 20; ++row) EXPECT_OK(Put(std::to_string(row)));
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
    // What an old process is told does not have anybody make it there.
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
  ASSERT_OK(MakePlace(*host, kRows));
  ASSERT_OK(Freeze(*host, kRows));
  const auto ghost = [&] {
    first_.a().Run("CREATE DATABASE mod00001; CREATE TABLE mod00001.events LIKE mod00001_moved.events");
  };
  ghost();
  EXPECT_OK(Freeze(*host, kRows)) << "given again";
  ghost();
  // Somebody has written there: that must not get lost, nor hide what was there before.
  first_.a().Run("INSERT INTO mod00001.events VALUES ('ghost', 'c', 1, 'v')");
  EXPECT_THAT(Thaw(*host, kRows),
              FailsWith(StatusCode::kFailedPrecondition, "has rows that clients were told"));
  first_.a().Run("CREATE DATABASE kept; RENAME TABLE mod00001.events TO kept.events");
  EXPECT_OK(Thaw(*host, kRows));
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
