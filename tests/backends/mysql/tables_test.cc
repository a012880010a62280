#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <utility>

#include "backend_api/leftover.h"
#include "backend_api/outcome.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/units/migration_tables.h"
#include "catalog/file_catalog.h"
#include "router/router.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/stop_at.h"

/// Processes that make and remove tables while others do: migrations, moves of shards, processes that slept.
namespace kvstore::testing {
namespace {

using State = EndpointState;

const bool kShared = ShareFleet();
constexpr int kRows = 200;
constexpr uint64_t kEpoch = 10;

mysql::ReadSpecs Always(const DatasetSpec& spec) {
  return [spec] { return std::vector{spec}; };
}

DatasetSpec NextOf(DatasetSpec spec) {
  ++spec.incarnation;
  return spec;
}

std::string RowName(int i) { return "row" + std::to_string(i); }

void Fill(RowStore& rows) {
  for (int i = 0; i < kRows; ++i) {
    const CellWrite cell{"c", "v", std::nullopt};
    ASSERT_OK(rows.Put(RowName(i), {&cell, 1}, {}));
  }
}

int CountRows(RowStore& rows) {
  int count = 0;
  for (int i = 0; i < kRows; ++i) {
    const auto page = rows.Get(RowName(i), {}, std::nullopt);
    if (page.ok() && !page->items.empty()) ++count;
  }
  return count;
}

/// Runs `work` in a thread that stands for a process which pauses at the fail point, and `meanwhile` during
/// the pause. Returns the status of `work`.
absl::Status Slept(const char* point, const std::function<absl::Status()>& work,
                   const std::function<void()>& meanwhile) {
  StopAt stop(point, /*nth=*/5);
  absl::Status status;
  std::thread sleeper([&] { status = work(); });
  stop.Await();
  meanwhile();
  stop.Release();
  sleeper.join();
  return status;
}

// ---- migrations ----

class InitMeetsAMigration : public ::testing::TestWithParam<std::string> {};

TEST_P(InitMeetsAMigration, AndMakesNoTable) {
  DatasetSpec spec{.name = "events", .max_versions = 0, .engine = GetParam()};
  const Opened dataset(spec);
  Fill(*dataset.rows);
  const auto endpoint = *dataset.backend->OpenForMigration(dataset.spec);
  ASSERT_OK(endpoint->RaiseEpoch(kEpoch));
  const auto init = [&] {
    mysql::LeftAlone left;
    EXPECT_OK(dataset.backend->Init(Always(dataset.spec), nullptr, &left));
    uint64_t count = 0;
    for (const auto& [why, shards] : left) count += shards;
    return count;
  };
  for (const State state : {State::kServing, State::kFrozen}) {
    ASSERT_OK(endpoint->TransitionTo(kEpoch, state, true));
    EXPECT_EQ(init(), 0u);
  }
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kMoved, true));
  EXPECT_EQ(CountTables("events"), 0);
  EXPECT_EQ(init(), TestFleet::kShards);
  EXPECT_OK(dataset.backend->CreateDataset(dataset.spec)) << "it was created before";
  EXPECT_EQ(CountTables("events"), 0) << "no table that nobody knows";
  // The cutover is backed out, and all is there.
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, true));
  EXPECT_EQ(init(), 0u);
  EXPECT_EQ(CountRows(*dataset.rows), kRows);
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kFrozen, true));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kMoved, true));
  // One shard has its table back, as in the middle of a back-out.
  SharedFleet().server(1).Run("RENAME TABLE `mod00009`.`events" +
                              std::string(GetParam() == "myrocks" ? "$r" : "") +
                              "$away` TO `mod00009`.`events`");
  EXPECT_EQ(init(), TestFleet::kShards - 1);
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, true));
  EXPECT_EQ(CountRows(*dataset.rows), kRows);
}

INSTANTIATE_TEST_SUITE_P(Engines, InitMeetsAMigration, ::testing::ValuesIn(StorageEngines()),
                         [](const auto& one) { return one.param; });

TEST(Init, MakesNothingOfADatasetThatHasLeftMeanwhile) {
  const Opened dataset({.name = "events"});
  for (size_t i = 0; i < 2; ++i) {
    const std::string drops = SharedFleet().server(i).Run(
        "SELECT CONCAT('DROP TABLE `', table_schema, '`.events;') FROM information_schema.tables WHERE "
        "table_schema REGEXP '^(db|mod)[0-9]' AND table_name = 'events'");
    SharedFleet().server(i).Run(drops);
  }
  // The catalog has the dataset when init begins, and has lost it when init reads it again.
  int reads = 0;
  const mysql::ReadSpecs read = [&] {
    return reads++ == 0 ? std::vector{dataset.spec} : std::vector<DatasetSpec>();
  };
  mysql::LeftAlone left;
  ASSERT_OK(dataset.backend->Init(read, nullptr, &left));
  EXPECT_EQ(CountTables("events"), 0);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.begin()->second, TestFleet::kShards);
}

// ---- moves of shards ----

TEST(Init, LeavesAShardAloneThatMovesToAnotherHost) {
  const Opened dataset({.name = "events"});
  MariaDbServer& server = SharedFleet().OfShard(2);
  // This is how a move leaves the shard between its switch and the change of the map.
  server.Run(
      "CREATE DATABASE mod00002_moved; RENAME TABLE mod00002.events TO mod00002_moved.events, "
      "mod00002.`kv$clock` TO mod00002_moved.`kv$clock`");
  mysql::LeftAlone left;
  ASSERT_OK(dataset.backend->Init(Always(dataset.spec), nullptr, &left));
  EXPECT_EQ(server.Run("SHOW TABLES IN mod00002"), "");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.begin()->second, 1u);
  // A new dataset is not created there, nor is one dropped whose tables are put away.
  const DatasetSpec other{.name = "other", .backend = "mysql", .incarnation = 7};
  EXPECT_THAT(dataset.backend->CreateDataset(other),
              FailsWith(absl::StatusCode::kUnavailable, "kv shards move status"));
  EXPECT_THAT(dataset.backend->DropDataset(dataset.spec),
              FailsWith(absl::StatusCode::kUnavailable, "kv shards move status"));
  // Later the database is gone too. It is not made anew for a process with an old map.
  server.Run("DROP DATABASE mod00002");
  ASSERT_OK(dataset.backend->Init(Always(dataset.spec), nullptr));
  EXPECT_EQ(server.Run("SHOW DATABASES LIKE 'mod00002'"), "");
  // The shard comes back.
  server.Run(
      "CREATE DATABASE mod00002; RENAME TABLE mod00002_moved.events TO mod00002.events, "
      "mod00002_moved.`kv$clock` TO mod00002.`kv$clock`");
  left.clear();
  ASSERT_OK(dataset.backend->Init(Always(dataset.spec), nullptr, &left));
  EXPECT_TRUE(left.empty());
  ASSERT_OK(dataset.backend->CreateDataset(other));
  server.Run("DROP DATABASE mod00002_moved");
}

TEST(Init, MakesNoTableInAShardThatIsTakenAwayAtThatMoment) {
  const Opened dataset({.name = "events"});
  MariaDbServer& server = SharedFleet().OfShard(4);
  server.Run("DROP TABLE mod00004.events");
  const auto mover = *mysql::Connection::Open(dataset.backend->fleet().map(ShardSpace::kMod).Find(4)->master,
                                              dataset.backend->fleet().options());
  const mysql::ServerLock lock(*mover, {mysql::ShardLock("mod00004")}, mysql::Holder::kEnds);
  ASSERT_TRUE(lock.held());
  EXPECT_THAT(dataset.backend->Init(Always(dataset.spec), nullptr),
              FailsWith(absl::StatusCode::kUnavailable, "moving that shard"));
  EXPECT_EQ(server.Run("SHOW TABLES IN mod00004"), "kv$clock\n");
}

// ---- processes that slept ----

TEST(Drop, ThatWakesUpTakesNothingOfTheNextDataset) {
  const Opened dataset({.name = "events", .max_versions = 0});
  Fill(*dataset.rows);
  const DatasetSpec next = NextOf(dataset.spec);
  const auto other = *SharedFleet().Open();
  std::shared_ptr<RowStore> rows;
  EXPECT_OK(Slept(
      "drop.locked", [&] { return dataset.backend->DropDataset(dataset.spec); },
      [&] {
        ASSERT_OK(other->DropDataset(dataset.spec));
        ASSERT_OK(other->CreateDataset(next));
        rows = *other->OpenRows(next);
        Fill(*rows);
      }));
  EXPECT_EQ(CountRows(*rows), kRows);
}

TEST(Drop, TakesWhatAMigrationLeftOfTheDatasetAndNothingElse) {
  const Opened dataset({.name = "events", .max_versions = 0});
  const auto endpoint = *dataset.backend->OpenForMigration(dataset.spec);
  ASSERT_OK(endpoint->RaiseEpoch(kEpoch));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, true));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kFrozen, true));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kMoved, true));
  ASSERT_OK(dataset.backend->DropDataset(NextOf(dataset.spec)));
  EXPECT_EQ(CountTables("events$away"), static_cast<int>(TestFleet::kShards));
  ASSERT_OK(dataset.backend->DropDataset(dataset.spec));
  for (const char* name : {"events", "events$away", "events$state", "events$dirty"}) {
    EXPECT_EQ(CountTables(name), 0) << name;
  }
}

TEST(Create, ThatWakesUpTakesNothingOfTheNextDataset) {
  SharedFleet().Clear();
  const auto one = *SharedFleet().Open();
  const auto other = *SharedFleet().Open();
  const DatasetSpec spec{.name = "events", .backend = "mysql", .max_versions = 0, .incarnation = 1};
  const DatasetSpec next = NextOf(spec);
  std::shared_ptr<RowStore> rows;
  const absl::Status slept = Slept(
      "create.locked", [&] { return one->CreateDataset(spec); },
      [&] {
        ASSERT_OK(other->DropDataset(spec));
        ASSERT_OK(other->CreateDataset(next));
        rows = *other->OpenRows(next);
        Fill(*rows);
      });
  EXPECT_THAT(slept, FailsWith(absl::StatusCode::kFailedPrecondition, "incarnation 2"));
  EXPECT_EQ(LeftoverOf(slept), 2u);
  // The process undoes what it began.
  EXPECT_OK(one->DropDataset(spec));
  EXPECT_EQ(CountRows(*rows), kRows);
}

TEST(Init, ThatWakesUpTakesNothingOfTheNextDataset) {
  const Opened dataset({.name = "events", .max_versions = 0});
  ASSERT_OK(dataset.backend->DropDataset(dataset.spec));
  const DatasetSpec next = NextOf(dataset.spec);
  std::atomic<bool> dropped{false};
  const mysql::ReadSpecs read = [&] { return std::vector{dropped ? next : dataset.spec}; };
  const auto other = *SharedFleet().Open();
  for (const char* point : {"init.locked", "init.read"}) {
    SCOPED_TRACE(point);
    dropped = false;
    std::shared_ptr<RowStore> rows;
    EXPECT_OK(Slept(
        point, [&] { return dataset.backend->Init(read, nullptr); },
        [&] {
          dropped = true;
          ASSERT_OK(other->DropDataset(dataset.spec));
          ASSERT_OK(other->CreateDataset(next));
          rows = *other->OpenRows(next);
          Fill(*rows);
        }));
    EXPECT_EQ(CountRows(*rows), kRows);
    ASSERT_OK(other->DropDataset(next));
    EXPECT_EQ(CountTables("events"), 0);
  }
}

TEST(Create, SaysWhoseTableIsInTheWay) {
  const Opened dataset({.name = "events", .max_versions = 0});
  Fill(*dataset.rows);
  const absl::Status status = dataset.backend->CreateDataset(NextOf(dataset.spec));
  EXPECT_EQ(LeftoverOf(status), 1u) << status;
  EXPECT_EQ(CountRows(*dataset.rows), kRows);
  for (size_t i = 0; i < 2; ++i) {
    SharedFleet().server(i).Run(i == 0 ? "ALTER TABLE mod00003.events COMMENT 'mine'"
                                       : "ALTER TABLE mod00011.events COMMENT 'mine'");
  }
  ASSERT_OK(dataset.backend->DropDataset(dataset.spec));
  EXPECT_THAT(dataset.backend->CreateDataset(dataset.spec),
              FailsWith(absl::StatusCode::kFailedPrecondition, "belongs to no dataset"));
}

TEST(Create, RemovesWhatIsEmptyAndTheCatalogDoesNotName) {
  const Opened left({.name = "events", .max_versions = 0});
  const TempDir dir;
  Router::Backends backends;
  backends.emplace("mysql", *SharedFleet().Open());
  const auto router =
      *Router::Open(std::make_unique<FileCatalog>(dir.path() / "catalog"), std::move(backends), "mysql");
  ASSERT_OK(router->CreateDataset({.name = "events"}));
  EXPECT_EQ(router->GetDataset("events")->table, "") << "there is no other process";
  EXPECT_EQ(router->GetRow("events", RowName(1), {})->items.size(), 0u);
  // Tables that the catalog names are not removed.
  const auto other = *SharedFleet().Open();
  ASSERT_OK(other->DropDataset(*router->GetDataset("events")));
  DatasetSpec alive = *router->GetDataset("events");
  alive.name = "more";
  alive.incarnation = 77;
  ASSERT_OK(other->CreateDataset(alive));
  {
    FileCatalog catalog(dir.path() / "catalog");
    const int64_t version = catalog.Load()->version;
    alive.name = "less";
    ASSERT_OK(catalog.Put({alive, DatasetState::kCreating}, version));
  }
  const absl::Status refused = router->CreateDataset({.name = "more"});
  EXPECT_EQ(LeftoverOf(refused), 77u) << refused;
  EXPECT_EQ(CountTables("more"), static_cast<int>(TestFleet::kShards));
}

TEST(Create, LeavesADatasetOfAnotherCatalogAlone) {
  const Opened left({.name = "events", .max_versions = 0});
  const CellWrite cell{"c", "v", std::nullopt};
  ASSERT_OK(left.rows->Put(RowName(0), {&cell, 1}, {}));
  const TempDir dir;
  Router::Backends backends;
  backends.emplace("mysql", *SharedFleet().Open());
  const auto router =
      *Router::Open(std::make_unique<FileCatalog>(dir.path() / "catalog"), std::move(backends), "mysql");
  EXPECT_THAT(router->CreateDataset({.name = "events"}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "of incarnation 1 has rows"));
  // The other catalog's dataset does not lose its empty tables either.
  EXPECT_EQ(CountTables("events"), static_cast<int>(TestFleet::kShards));
  EXPECT_EQ(CountRows(*left.rows), 1);
  // It does not lose them to kv shards init either, nor to who obeys the message and puts the table aside.
  const absl::Status refused = left.backend->Init(Always(NextOf(left.spec)), nullptr);
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kFailedPrecondition, "of incarnation 1 has rows"));
  EXPECT_EQ(CountRows(*left.rows), 1);
  const std::string message(refused.message());
  std::smatch rename;
  ASSERT_TRUE(std::regex_search(message, rename,
                                std::regex("RENAME TABLE (`[^`]+`)\\.(`[^`]+`) TO (`[^`]+`\\.`[^`]+`)")))
      << message;
  MariaDbServer& server = SharedFleet().OfShard(static_cast<uint32_t>(std::stoul(rename[1].str().substr(4))));
  server.Run(rename[0]);
  EXPECT_EQ(server.Run("SELECT COUNT(*) FROM " + rename[3].str()), "1\n");
  server.Run(fmt::format("RENAME TABLE {} TO {}.{}", rename[3].str(), rename[1].str(), rename[2].str()));
  EXPECT_EQ(CountRows(*left.rows), 1);
  // Once the dataset is dropped, nothing is in the way.
  ASSERT_OK(left.backend->DropDataset(left.spec));
  EXPECT_OK(router->CreateDataset({.name = "events"}));
}

// ---- purge ----

TEST(Purge, ThatWaitsForItsRateGivesWayToADrop) {
  SharedFleet().Clear();
  auto options = TestFleet::Options();
  options.purge_cells_per_s = 1;
  const TempDir dir;
  Router::Backends backends;
  backends.emplace("mysql", *SharedFleet().Open(options));
  const auto router =
      *Router::Open(std::make_unique<FileCatalog>(dir.path() / "catalog"), std::move(backends), "mysql");
  ASSERT_OK(router->CreateDataset({.name = "events"}));
  // By its rate, one shard with so many cells takes a quarter of an hour.
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run("INSERT INTO " + mysql::DatabaseName(ShardSpace::kMod, shard) +
                                     ".events SELECT 'r', 'c', seq, 'v' FROM " + Numbers(1, 1000));
  }
  absl::StatusOr<ReclaimResult> purged;
  std::atomic<int> reports{0};
  std::thread purger([&] {
    // A purge reports between its waits, ten times a second.
    purged = router->Compact("events", [&](uint64_t, uint64_t) { return ++reports, true; });
  });
  EXPECT_TRUE(Eventually([&] { return reports > 20; }));
  EXPECT_OK(router->DropDataset("events", {}));
  purger.join();
  EXPECT_THAT(purged.status(), FailsWith(absl::StatusCode::kAborted, "is being dropped"));
  EXPECT_EQ(CountTables("events"), 0);
}

// ---- names ----

TEST(Tables, HaveTheNameThatTheCatalogGivesThem) {
  SharedFleet().Clear();
  const auto backend = *SharedFleet().Open();
  const DatasetSpec old{.name = "events", .backend = "mysql", .max_versions = 0, .incarnation = 1};
  DatasetSpec spec = NextOf(old);
  spec.table = NumberedTable(spec.name, 2);
  ASSERT_OK(backend->CreateDataset(old));
  const auto stale = *backend->OpenRows(old);
  ASSERT_OK(backend->CreateDataset(spec));
  const auto rows = *backend->OpenRows(spec);
  Fill(*rows);
  EXPECT_EQ(CountTables("events@2"), static_cast<int>(TestFleet::kShards));
  EXPECT_EQ(CountRows(*stale), 0);
  ASSERT_OK(backend->DropDataset(old));
  const CellWrite cell{"c", "w", std::nullopt};
  EXPECT_TRUE(IsGone(stale->Put("r", {&cell, 1}, {}).status())) << "never into another dataset";
  EXPECT_EQ(CountRows(*rows), kRows);
  // A migration names its tables likewise.
  const auto endpoint = *backend->OpenForMigration(spec);
  ASSERT_OK(endpoint->RaiseEpoch(kEpoch));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, true));
  ASSERT_OK(rows->Put("r", {&cell, 1}, {}));
  EXPECT_EQ(endpoint->ReadDirty(10)->size(), 1u);
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kFrozen, true));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kMoved, true));
  EXPECT_EQ(CountTables("events@2$away"), static_cast<int>(TestFleet::kShards));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, true));
  ASSERT_OK(endpoint->TransitionTo(kEpoch, State::kServing, false));
  EXPECT_EQ(CountRows(*rows), kRows);
  EXPECT_GT(backend->Stats(spec)->approximate_entries, 0u);
  ASSERT_OK(backend->DropDataset(spec));
  EXPECT_EQ(CountTables("events@2"), 0);
}

}  // namespace
}  // namespace kvstore::testing
