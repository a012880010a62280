#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "backend_api/leftover.h"
#include "backend_api/outcome.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/server_lock.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "idgen/object_id.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/stop_at.h"

/// Tables that are made on the shards where a call needs them first.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();
constexpr int kAllTables = TestFleet::kShards;
/// A create makes the table on the first shard of each of the two ranges.
constexpr int kAtFirst = 2;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

mysql::MySqlOptions OnFirstUse() {
  auto options = TestFleet::Options();
  options.tables_on_first_use = true;
  return options;
}

class FirstUseTest : public ::testing::Test {
 protected:
  FirstUseTest() : pins_({.name = "pins", .shape = Shape::kObjects, .type = 1}, OnFirstUse()) {}

  /// Creates an object on a shard.
  absl::StatusOr<uint64_t> CreateOn(uint32_t shard) {
    return pins_.objects->Create("data", {.shard = shard});
  }
  static uint64_t IdOn(uint32_t shard, uint64_t local) { return ObjectId::ValueOf(shard, 1, local); }

  const Opened pins_;
};

TEST_F(FirstUseTest, ATableIsMadeByTheFirstCallThatNeedsIt) {
  EXPECT_EQ(CountTables("pins"), kAtFirst);
  const auto id = CreateOn(5);
  ASSERT_OK(id);
  EXPECT_EQ(*id, IdOn(5, 1));
  EXPECT_EQ(CountTables("pins"), kAtFirst + 1);
  EXPECT_EQ(pins_.objects->Get(*id, {})->data, "data");
  EXPECT_THAT(pins_.objects->Get(IdOn(9, 1), {}), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(pins_.objects->Erase(IdOn(10, 1)), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(CountTables("pins"), kAtFirst + 3);
  EXPECT_EQ(CountTables("pins$new"), 0);
}

TEST_F(FirstUseTest, OneStatementMayNeedTheTablesOfNeighbouringShards) {
  const auto id = CreateOn(3);
  ASSERT_OK(id);
  const std::vector<uint64_t> ids = {IdOn(2, 7), *id, IdOn(6, 1), IdOn(12, 1)};
  const auto found = pins_.objects->GetMany(ids, {});
  ASSERT_EQ(found.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i == 1) {
      EXPECT_OK(found[i]);
    } else {
      EXPECT_THAT(found[i], FailsWith(absl::StatusCode::kNotFound, "")) << i;
    }
  }
}

TEST_F(FirstUseTest, ManyCallsThatNeedATableAtOnceMakeItOnce) {
  const auto other = *SharedFleet().Open();
  const auto objects = *other->OpenObjects(pins_.spec);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t shard = 1; shard < 8; ++shard) {
        EXPECT_OK((i % 2 == 0 ? objects : pins_.objects)->Create("data", {.shard = shard}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t shard = 1; shard < 8; ++shard) {
    EXPECT_EQ(SharedFleet().OfShard(shard).Run("SELECT COUNT(*) FROM " +
                                               mysql::DatabaseName(ShardSpace::kId, shard) + ".pins"),
              "8\n");
  }
  EXPECT_EQ(CountTables("pins"), kAtFirst + 7);
}

TEST_F(FirstUseTest, ATableThatWasMadeAndIsGoneIsAnError) {
  ASSERT_OK(CreateOn(5));
  SharedFleet().OfShard(5).Run("DROP TABLE db00005.pins");
  EXPECT_THAT(CreateOn(5), FailsWith(kFailedPrecondition, "kv shards init"));
  EXPECT_THAT(pins_.objects->Get(IdOn(5, 1), {}), FailsWith(kFailedPrecondition, "kv shards init"));
  SharedFleet().OfShard(0).Run("DROP TABLE db00000.pins");
  EXPECT_THAT((*SharedFleet().Open())->OpenObjects(pins_.spec),
              FailsWith(absl::StatusCode::kDataLoss, "is not here"));
}

TEST_F(FirstUseTest, ARangeOfTheMapMayBeginWithAShardThatNoCallHasNeeded) {
  SharedFleet().OfShard(0).Run("DROP TABLE db00000.pins");
  const auto records = SharedFleet().Tables();
  ASSERT_OK(records->End(pins_.spec));
  ASSERT_OK(records->Begin(pins_.spec));
  const auto other = *SharedFleet().Open();
  const auto objects = other->OpenObjects(pins_.spec);
  ASSERT_OK(objects);
  EXPECT_OK((*objects)->Create("data", {.shard = 0}));
}

TEST_F(FirstUseTest, AShardWithoutDatabaseOrThatMovesGetsNoTable) {
  MariaDbServer& server = SharedFleet().OfShard(4);
  server.Run("DROP DATABASE db00004");
  EXPECT_THAT(CreateOn(4), FailsWith(kFailedPrecondition, "kv shards init"));
  EXPECT_EQ(server.Run("SHOW DATABASES LIKE 'db00004'"), "");
  server.Run(
      "CREATE DATABASE db00004; CREATE DATABASE db00004_moved; CREATE TABLE db00004_moved.other (i INT)");
  EXPECT_THAT(CreateOn(4), FailsWith(absl::StatusCode::kUnavailable, "kv shards move status"));
  EXPECT_EQ(server.Run("SHOW TABLES IN db00004"), "");
  server.Run("DROP DATABASE db00004_moved");
}

TEST_F(FirstUseTest, ACallWaitsWhileTheShardsTablesAreWorkedOn) {
  const auto mover = *mysql::Connection::Open(pins_.backend->fleet().map(ShardSpace::kId).Find(4)->master,
                                              pins_.backend->fleet().options());
  auto lock = std::make_unique<mysql::ServerLock>(*mover, std::vector{mysql::ShardLock("db00004")},
                                                  mysql::Holder::kEnds);
  ASSERT_TRUE(lock->held());
  std::thread caller([&] { EXPECT_OK(CreateOn(4)); });
  EXPECT_TRUE(Eventually([] {
    return SharedFleet().OfShard(4).Run(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'") == "1\n";
  }));
  EXPECT_EQ(SharedFleet().OfShard(4).Run("SHOW TABLES IN db00004"), "");
  lock.reset();
  caller.join();
}

TEST_F(FirstUseTest, WhileTheRecordsAreAwayOnlyCallsThatNeedANewTableFail) {
  ASSERT_OK(CreateOn(5));
  DatasetSpec spec = pins_.spec;
  spec.name = "boards";
  spec.incarnation = 8;
  const auto eager = *SharedFleet().Open();
  ASSERT_OK(eager->CreateDataset(spec));
  const auto boards = *eager->OpenObjects(spec);
  SharedFleet().OfShard(6).Run("DROP TABLE db00006.boards");
  SharedFleet().TakeTablesAway(true);
  EXPECT_OK(CreateOn(5));
  const absl::Status failed = CreateOn(6).status();
  EXPECT_THAT(failed, FailsWith(absl::StatusCode::kUnavailable, "the records are away"));
  EXPECT_TRUE(IsGone(failed)) << "the router looks whether the dataset has gone";
  EXPECT_OK(boards->Create("data", {.shard = 5}));
  EXPECT_THAT(boards->Create("data", {.shard = 6}), FailsWith(kFailedPrecondition, "kv shards init"));
  EXPECT_OK((*SharedFleet().Open())->OpenObjects(pins_.spec)) << "its first table is there";
  SharedFleet().TakeTablesAway(false);
  EXPECT_OK(CreateOn(6));
}

TEST_F(FirstUseTest, WhoIsCutShortIsFollowedByTheNext) {
  uint32_t shard = 1;
  for (const char* const point : {"first_use.locked", "first_use.made", "first_use.recorded"}) {
    SCOPED_TRACE(point);
    ++shard;
    {
      struct Died {};
      SetFailPointHook([&](std::string_view name) {
        if (name == point) throw Died();
      });
      EXPECT_THROW(CreateOn(shard).IgnoreError(), Died);
      SetFailPointHook(nullptr);
    }
    const auto id = CreateOn(shard);
    ASSERT_OK(id);
    EXPECT_EQ(pins_.objects->Get(*id, {})->data, "data");
  }
  EXPECT_EQ(CountTables("pins"), kAtFirst + 3);
  EXPECT_EQ(CountTables("pins$new"), 0);
}

TEST_F(FirstUseTest, ADropLeavesNothingOfTheDatasetWhateverItCrosses) {
  const auto other = *SharedFleet().Open();
  for (const char* const point : {"first_use.locked", "first_use.made", "first_use.recorded"}) {
    SCOPED_TRACE(point);
    DatasetSpec spec = pins_.spec;
    spec.name = "boards";
    spec.type = 2;
    spec.incarnation = 7;
    ASSERT_OK(pins_.backend->CreateDataset(spec));
    const auto boards = *pins_.backend->OpenObjects(spec);
    StopAt stop(point, /*nth=*/1);
    std::thread caller([&] { EXPECT_FALSE(boards->Create("data", {.shard = 5}).ok()); });
    stop.Await();
    // It takes the locks of a process that does not go on.
    EXPECT_OK(other->DropDataset(spec));
    stop.Release();
    caller.join();
    EXPECT_EQ(CountTables("boards") + CountTables("boards$new"), 0);
    EXPECT_FALSE(SharedFleet().Tables()->Find(spec, 5)->has_value());
  }
}

TEST_F(FirstUseTest, ADatasetIsNotCreatedWhereATableOfAnotherOneHasItsName) {
  DatasetSpec spec = pins_.spec;
  spec.name = "boards";
  spec.incarnation = 99;
  const auto connection = *mysql::Connection::Open(
      pins_.backend->fleet().map(ShardSpace::kId).Find(5)->master, pins_.backend->fleet().options());
  mysql::CreateTable(*connection, spec, 5);
  spec.incarnation = 100;
  const absl::Status refused = pins_.backend->CreateDataset(spec);
  EXPECT_EQ(LeftoverOf(refused), 99u) << refused;
  EXPECT_OK(pins_.backend->DropDataset(spec)) << "as whoever created it undoes that";
  SharedFleet().OfShard(5).Run("ALTER TABLE db00005.boards COMMENT 'mine'");
  EXPECT_THAT(pins_.backend->CreateDataset(spec), FailsWith(kFailedPrecondition, "belongs to no dataset"));
  EXPECT_OK(pins_.backend->DropDataset(spec));
  EXPECT_EQ(CountTables("boards"), 1);
}

TEST_F(FirstUseTest, InitMakesAllTables) {
  ASSERT_OK(CreateOn(5));
  mysql::LeftAlone left;
  ASSERT_OK(pins_.backend->Init([&] { return std::vector{pins_.spec}; }, nullptr, &left));
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(CountTables("pins"), kAllTables);
  // From here on a table that is missing was lost.
  SharedFleet().OfShard(9).Run("DROP TABLE db00009.pins");
  EXPECT_THAT(CreateOn(9), FailsWith(kFailedPrecondition, "kv shards init"));
}

TEST_F(FirstUseTest, AMigrationFindsAllTables) {
  ASSERT_OK(CreateOn(5));
  const auto endpoint = *pins_.backend->OpenForMigration(pins_.spec);
  ASSERT_OK(endpoint->RaiseEpoch(10));
  EXPECT_EQ(CountTables("pins"), kAllTables);
  ASSERT_OK(endpoint->TransitionTo(10, EndpointState::kServing, true));
  EXPECT_EQ(endpoint->Status()->partitions[EndpointState::kServing], TestFleet::kShards);
  ASSERT_OK(endpoint->TransitionTo(10, EndpointState::kFrozen, true));
  ASSERT_OK(endpoint->TransitionTo(10, EndpointState::kMoved, true));
  EXPECT_TRUE(IsMigrating(CreateOn(5).status()));
  EXPECT_EQ(CountTables("pins"), 0);
  ASSERT_OK(endpoint->TransitionTo(10, EndpointState::kAbsent, false));
  EXPECT_FALSE(CreateOn(5).ok());
  EXPECT_EQ(CountTables("pins"), 0) << "the data is elsewhere";
}

TEST_F(FirstUseTest, ReadersOfTheWholeDatasetFindAllTables) {
  const auto id = CreateOn(5);
  ASSERT_OK(id);
  const auto units = *pins_.backend->OpenUnits(pins_.spec);
  const auto snapshot = units->Snapshot(std::chrono::seconds(60));
  ASSERT_OK(snapshot);
  const auto scan = *(*snapshot)->Scan({}, 0);
  ASSERT_OK_AND_ASSIGN(const auto page, scan->Next());
  EXPECT_EQ(page.size(), 1u);
  // The shards are still ones on which tables are made when they are needed.
  EXPECT_TRUE(SharedFleet().Tables()->Find(pins_.spec, 5)->has_value());
}

TEST_F(FirstUseTest, ACreateThatIsRepeatedBeginsNoRecord) {
  // It was created with all tables, which happens to be done again by a process that has the option.
  const auto eager = *SharedFleet().Open();
  DatasetSpec spec = pins_.spec;
  spec.name = "boards";
  spec.incarnation = 8;
  ASSERT_OK(eager->CreateDataset(spec));
  EXPECT_EQ(CountTables("boards"), kAllTables);
  ASSERT_OK(pins_.backend->CreateDataset(spec));
  EXPECT_FALSE(SharedFleet().Tables()->Find(spec, 5)->has_value());
  // The other way round the record is kept, and what there is of it.
  ASSERT_OK(CreateOn(5));
  ASSERT_OK(eager->CreateDataset(pins_.spec));
  EXPECT_EQ(CountTables("pins"), kAtFirst + 1);
  EXPECT_EQ(*SharedFleet().Tables()->Find(pins_.spec, 5), true);
}

TEST_F(FirstUseTest, WhatInitHasMadeIsKnownAlsoIfItIsCutShort) {
  int shards = 0;
  const auto stop = [&](uint64_t, uint64_t) { return ++shards < 12; };
  EXPECT_THAT(pins_.backend->Init([&] { return std::vector{pins_.spec}; }, stop),
              FailsWith(absl::StatusCode::kCancelled, ""));
  const int made = CountTables("pins");
  EXPECT_GT(made, kAtFirst);
  EXPECT_LT(made, kAllTables);
  const auto records = SharedFleet().Tables();
  int known = 0;
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    if (**records->Find(pins_.spec, shard)) ++known;
  }
  EXPECT_EQ(known, made);
}

TEST(FirstUseOfRows, APurgeMakesNoTables) {
  const Opened events({.name = "events", .max_versions = 1}, OnFirstUse());
  const CellWrite cell{"c", "v", std::nullopt};
  for (int i = 0; i < 2; ++i) ASSERT_OK(events.rows->Put("row", {&cell, 1}, {}));
  const int tables = CountTables("events");
  EXPECT_LE(tables, kAtFirst + 1);
  const auto purged = events.backend->Reclaim(events.spec, nullptr);
  ASSERT_OK(purged);
  EXPECT_EQ(purged->surplus_cells, 1u);
  EXPECT_EQ(CountTables("events"), tables);
  EXPECT_OK(events.backend->Stats(events.spec));
  EXPECT_EQ(CountTables("events"), tables);
}

}  // namespace
}  // namespace kvstore::testing
