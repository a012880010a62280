#include <cppconn/exception.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/unit_key.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/units/migration_tables.h"
#include "base/clock.h"
#include "shardmap/mod_shard.h"
#include "tests/backends/mysql/tables_of_rows.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"

/// Migrations that meet programs which write with SQL of their own, and transactions that stay open.
namespace kvstore::testing {
namespace {

using mysql::Connection;
using State = EndpointState;

const bool kShared = ShareFleet();

/// A dataset on the shared fleet that records writes for a migration.
class CapturedDatasetTest : public ::testing::Test {
 protected:
  CapturedDatasetTest()
      : dataset_({.name = "events", .max_versions = 0}),
        endpoint_(*dataset_.backend->OpenForMigration(dataset_.spec)) {
    EXPECT_OK(endpoint_->RaiseEpoch(kEpoch));
    EXPECT_OK(endpoint_->TransitionTo(kEpoch, State::kServing, true));
  }
  Host HostOf(const std::string& row) {
    return dataset_.backend->fleet().map(ShardSpace::kMod).Find(ModShard(row, TestFleet::kShards))->master;
  }
  /// Returns a connection as any other program would have it.
  std::unique_ptr<Connection> Connect(const std::string& row) {
    return *Connection::Open(HostOf(row), dataset_.backend->fleet().options());
  }

  static constexpr uint64_t kEpoch = 10;
  Opened dataset_;
  std::unique_ptr<MigrationEndpoint> endpoint_;
};

TEST_F(CapturedDatasetTest, WhatOthersWriteIsRecorded) {
  const auto other = Connect("r");
  other->Run("INSERT INTO " + TableOf("r") + " VALUES ('r', 'c', 1, 'v')");
  other->Run("UPDATE " + TableOf("r") + " SET column_name = 'd' WHERE row_key = 'r'");
  ASSERT_OK_AND_ASSIGN(const auto entries, endpoint_->ReadDirty(10));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].key, RowUnitKey("r", "c"));
  EXPECT_EQ(entries[1].key, RowUnitKey("r", "c")) << "the update has removed it";
  EXPECT_EQ(entries[2].key, RowUnitKey("r", "d"));
}

TEST_F(CapturedDatasetTest, AnOpenTransactionKeepsAFreezeFromSucceedingAndIsNamed) {
  const auto other = Connect("r");
  other->Run("START TRANSACTION");
  other->Run("INSERT INTO " + TableOf("r") + " VALUES ('r', 'c', 1, 'v')");
  EXPECT_THAT(endpoint_->TransitionTo(kEpoch, State::kFrozen, true),
              FailsWith(absl::StatusCode::kUnavailable, "has had a transaction open"));
  // The freeze is undone.
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kServing, true));
  other->Run("COMMIT");
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kFrozen, true));
  EXPECT_EQ(endpoint_->ReadDirty(10)->size(), 1u) << "nothing escapes";
}

TEST_F(CapturedDatasetTest, AnOpenReadKeepsItFromMovingAndTheWayBackIsOpen) {
  const auto other = Connect("r");
  other->Run("START TRANSACTION");
  other->Ask("SELECT COUNT(*) FROM " + TableOf("r"));
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kFrozen, true));
  EXPECT_THAT(endpoint_->TransitionTo(kEpoch, State::kMoved, true),
              FailsWith(absl::StatusCode::kUnavailable, "has had a transaction open"));
  EXPECT_TRUE(endpoint_->Status()->Any(State::kMoved)) << "other shards";
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kServing, true));
  EXPECT_TRUE(endpoint_->Status()->All(State::kServing));
  EXPECT_OK(dataset_.rows->Put("r", std::vector<CellWrite>{{"c", "v"}}, {}));
}

TEST_F(CapturedDatasetTest, ATransactionThatBeganBeforeTheFreezeCannotWriteAfterIt) {
  const auto other = Connect("r");
  other->Run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kFrozen, true));
  EXPECT_THROW(other->Run("INSERT INTO " + TableOf("r") + " VALUES ('r', 'c', 1, 'v')"), sql::SQLException);
  other->Run("ROLLBACK");
  ASSERT_OK(endpoint_->TransitionTo(kEpoch, State::kMoved, true));
  EXPECT_THROW(other->Ask("SELECT 1 FROM " + TableOf("r")), sql::SQLException)
      << "an old program finds no table";
}

TEST_F(CapturedDatasetTest, AWorkerThatSleepsWithTheLockLosesItsConnection) {
  const auto sleeper = Connect("r");
  const uint32_t shard = ModShard("r", TestFleet::kShards);
  const mysql::MigrationLock lock(*sleeper, dataset_.spec, shard);
  ASSERT_TRUE(lock.held());
  ASSERT_OK(endpoint_->RaiseEpoch(kEpoch + 1));
  EXPECT_FALSE(sleeper->Alive());
}

/// Retries a step of a migration, as its worker does, until it is done. Each refusal must name the open
/// transaction.
class Asking {
 public:
  explicit Asking(std::function<absl::Status()> step)
      : thread_([this, step = std::move(step)] {
          absl::Status status = step();
          for (; absl::IsUnavailable(status); status = step()) {
            EXPECT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "has had a transaction open"));
            ++refused_;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
          EXPECT_OK(status);
          done_ = true;
        }) {}
  ~Asking() { thread_.join(); }
  /// Whether the step is not done and was refused fewer than three times.
  bool Waits() const { return refused_ < 3 && !done_; }

 private:
  std::atomic<bool> done_{false};
  std::atomic<int> refused_{0};
  std::thread thread_;
};

TEST_F(CapturedDatasetTest, ClientsGetThroughWhileAStepWaitsForATransaction) {
  const auto open = Connect("r");
  const auto writer = Connect("r");
  writer->Run("SET SESSION lock_wait_timeout = 3, innodb_lock_wait_timeout = 3");
  uint64_t next = 0;
  uint64_t epoch = kEpoch;
  const auto write = [&] {
    writer->Run(fmt::format("INSERT INTO {} VALUES ('r', 'c', {}, 'v')", TableOf("r"), ++next));
  };
  // A new worker raises the epoch while another program has written and not committed.
  open->Run("START TRANSACTION");
  open->Run("INSERT INTO " + TableOf("r") + " VALUES ('other', 'c', 1, 'v')");
  {
    const Asking asking([&] { return endpoint_->RaiseEpoch(++epoch); });
    while (asking.Waits()) ASSERT_NO_THROW(write());
    open->Run("COMMIT");
  }
  // The migration ends while another program reads in a transaction.
  open->Run("START TRANSACTION");
  open->Ask("SELECT COUNT(*) FROM " + TableOf("r"));
  {
    const Asking asking([&] { return endpoint_->TransitionTo(epoch, State::kServing, false); });
    while (asking.Waits()) ASSERT_NO_THROW(write());
    open->Run("COMMIT");
  }
  write();
  const auto page = dataset_.rows->Get("r", {.versions = 1'000'000}, std::nullopt);
  ASSERT_OK(page);
  EXPECT_EQ(page->items.at(0).cells.size(), next);
}

TEST_F(CapturedDatasetTest, TheClockIsRaisedAlsoWhereTheServersTimeIsPast) {
  // The time of a slave that is promoted later may be behind the server's.
  const uint64_t past = WallClockMs() - 3'600'000;
  ASSERT_OK(endpoint_->RaiseTimestamp(kEpoch, past));
  const std::string clock = SharedFleet().OfShard(3).Run(
      "SELECT COUNT(*), MIN(last) >= " + std::to_string(past) + " FROM mod00003.`kv$clock`");
  EXPECT_EQ(clock, "64\t1\n");
}

TEST(MigrationsOfMyRocks, WhatTheLogNamesIsThereToBeRead) {
  KV_SKIP_ON_MYSQL("MySQL has no MyRocks");
  TestFleet fleet({kLittleMemoryForMyRocks});
  const auto backend = *fleet.Open();
  ASSERT_OK(backend->Init(nullptr, nullptr));
  const DatasetSpec spec{
      .name = "events", .backend = "mysql", .max_versions = 0, .engine = "myrocks", .incarnation = 1};
  ASSERT_OK(backend->CreateDataset(spec));
  const auto rows = *backend->OpenRows(spec);
  const auto endpoint = *backend->OpenForMigration(spec);
  ASSERT_OK(endpoint->RaiseEpoch(1));
  ASSERT_OK(endpoint->TransitionTo(1, State::kServing, true));
  for (size_t i = 0; i < 2; ++i) SlowDownMyRocks(fleet.server(i));
  constexpr size_t kWrites = 80;
  std::thread writer([&] {
    for (size_t i = 0; i < kWrites; ++i) {
      const CellWrite cell{"c", "v", 1};  // has a timestamp, so that the put is a single statement
      EXPECT_OK(rows->Put(fmt::format("row{}", i), {&cell, 1}, {}));
    }
  });
  // This is what a migration's copier does.
  std::map<std::string, size_t> copied;
  EXPECT_TRUE(Eventually([&] {
    const auto entries = *endpoint->ReadDirty(10);
    std::vector<std::string> keys;
    for (const DirtyEntry& entry : entries) keys.push_back(entry.key);
    const auto units = *endpoint->Read(keys, WallClockMs());
    for (const Unit& unit : units) copied[unit.key] = unit.cells.size();
    EXPECT_OK(endpoint->RemoveDirty(1, entries));
    return copied.size() == kWrites;
  }));
  writer.join();
  size_t lost = 0;
  for (const auto& [key, cells] : copied) lost += cells == 0 ? 1 : 0;
  EXPECT_EQ(lost, 0u) << "writes that the copy will never have";
}

TEST(MigrationsHere, WhatADroppedDatasetLeftIsNotInTheWay) {
  // The dataset is left as if a host had been down when it was dropped in the middle of a migration.
  const Opened old({.name = "events", .max_versions = 0, .incarnation = 1});
  const auto left = *old.backend->OpenForMigration(old.spec);
  ASSERT_OK(left->RaiseEpoch(1));
  ASSERT_OK(left->TransitionTo(1, State::kServing, true));
  const std::vector<CellWrite> cells = {{"old", "v"}};
  ASSERT_OK(old.rows->Put("r", cells, {}));

  DatasetSpec spec = old.spec;
  spec.incarnation = 2;
  // Only the catalog that dropped it knows that its rows are not needed any more.
  const auto same = *old.backend->OpenForMigration(spec);
  ASSERT_OK(same->RaiseEpoch(9));
  EXPECT_THAT(same->TransitionTo(9, State::kImporting, true),
              FailsWith(absl::StatusCode::kFailedPrecondition, "has rows, and is of another dataset"));
  // The catalog gives the next dataset of a dropped name tables of its own.
  spec.table = "events@2";
  const auto endpoint = *old.backend->OpenForMigration(spec);
  EXPECT_TRUE(endpoint->Status()->All(State::kAbsent));
  ASSERT_OK(endpoint->RaiseEpoch(10));
  ASSERT_OK(endpoint->TransitionTo(10, State::kImporting, true));
  ASSERT_OK(endpoint->TransitionTo(10, State::kServing, true));
  ASSERT_OK_AND_ASSIGN(const auto rows, old.backend->OpenRows(spec));
  EXPECT_TRUE(rows->Get("r", {}, std::nullopt)->items.empty()) << "nothing of the old one";
  ASSERT_OK(rows->Put("r", cells, {}));
  EXPECT_EQ(endpoint->ReadDirty(10)->size(), 1u);
}

}  // namespace
}  // namespace kvstore::testing
