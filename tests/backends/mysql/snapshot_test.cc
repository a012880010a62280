#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/backend_suite/migration_suite.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"

/// Snapshots of units on a fleet: what ends them, and how many there may be. What they return is in
/// tests/backend_suite/units_suite.cc.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr std::chrono::seconds kLong{600};
constexpr auto kAborted = absl::StatusCode::kAborted;
const UnitRange kOnFirst{.shard = "mod00000"};   // a shard of the first host
const UnitRange kOnSecond{.shard = "mod00008"};  // and of the second

/// A dataset with some rows on every shard, and a reader of it.
struct Filled {
  explicit Filled(const mysql::MySqlOptions& options = TestFleet::Options())
      : dataset({.name = "events"}, options), reader(*dataset.backend->OpenUnits(dataset.spec)) {
    for (int i = 0; i < 200; ++i) EXPECT_OK(PutCell(*dataset.rows, "row" + std::to_string(i), "c", "v", 1));
  }
  Opened dataset;
  std::unique_ptr<UnitReader> reader;
};

/// Reads the first units of a range.
absl::Status ReadSome(UnitView& view, const UnitRange& range) {
  const auto scan = view.Scan(range, WallClockMs());
  return scan.ok() ? (*scan)->Next().status() : scan.status();
}

TEST(Snapshots, OneExpiresWhereAHostWasReplaced) {
  TestFleet& fleet = SharedFleet();
  const Filled filled;
  ASSERT_OK_AND_ASSIGN(const auto snapshot, filled.reader->Snapshot(kLong));
  ASSERT_OK(ReadSome(*snapshot, kOnFirst));
  ASSERT_OK_AND_ASSIGN(const auto scan, snapshot->Scan(kOnFirst, WallClockMs()));
  // The maps name another host for the first shards, at which nobody listens.
  fleet.WriteMaps("127.0.0.1:1", fleet.server(1).address());
  EXPECT_TRUE(Eventually([&] { return !ReadSome(*snapshot, kOnFirst).ok(); }));
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "the snapshot has expired"));
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "has another master than"));
  EXPECT_THAT(scan->Next(), FailsWith(kAborted, "mod00000"));
  EXPECT_OK(ReadSome(*snapshot, kOnSecond));
  // It does not come back with the host.
  fleet.WriteMaps(fleet.server(0).address(), fleet.server(1).address());
  EXPECT_TRUE(Eventually([&] { return ReadSome(*filled.reader, kOnFirst).ok(); }));
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "the snapshot has expired"));
}

TEST(Snapshots, OneExpiresWhereAHostWasRestarted) {
  const Filled filled;
  ASSERT_OK_AND_ASSIGN(const auto snapshot, filled.reader->Snapshot(kLong));
  ASSERT_OK(ReadSome(*snapshot, kOnFirst));
  SharedFleet().server(0).Kill();
  SharedFleet().server(0).Start();
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "the connection was lost"));
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "take another one"));
  EXPECT_OK(ReadSome(*snapshot, kOnSecond));
  EXPECT_TRUE(Eventually([&] { return ReadSome(*filled.reader, kOnFirst).ok(); }));
}

TEST(Snapshots, TheyTakeAQuarterOfAPoolAtMost) {
  auto options = TestFleet::Options();
  options.pool.max_connections = 8;
  const Filled filled(options);
  auto one = filled.reader->Snapshot(kLong);
  ASSERT_OK(one);
  ASSERT_OK_AND_ASSIGN(const auto two, filled.reader->Snapshot(kLong));
  EXPECT_THAT(filled.reader->Snapshot(kLong),
              FailsWith(absl::StatusCode::kResourceExhausted, "2 of its 8 connections are held"));
  EXPECT_EQ(Read(*filled.dataset.rows, "row0"), "c@1=v");
  one->reset();
  EXPECT_OK(filled.reader->Snapshot(kLong));
  EXPECT_OK(ReadSome(*two, kOnFirst));
}

TEST(Snapshots, OneThatIsForgottenHoldsNoTransactionForLong) {
  const MariaDbServer& server = SharedFleet().server(0);
  const Filled filled;
  ASSERT_OK_AND_ASSIGN(const auto snapshot, filled.reader->Snapshot(std::chrono::seconds(1)));
  // Asked for once only: the server does not read its transactions anew for somebody who asks often.
  const std::string of_transactions =
      server.Run("SELECT COALESCE(GROUP_CONCAT(trx_mysql_thread_id), 0) FROM information_schema.innodb_trx");
  EXPECT_TRUE(Eventually([&] {
    return server.Run("SELECT COUNT(*) FROM information_schema.processlist WHERE id IN (" +
                      of_transactions.substr(0, of_transactions.find('\n')) + ")") == "0\n";
  })) << of_transactions;
  EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "the snapshot has expired"));
}

TEST(Snapshots, ATableThatWasMadeAnewIsNotTakenForTheOld) {
  for (const std::string& engine : StorageEngines()) {
    Opened dataset({.name = "events", .engine = engine});
    ASSERT_OK(PutCell(*dataset.rows, "r", "c", "v", 1));
    ASSERT_OK_AND_ASSIGN(const auto reader, dataset.backend->OpenUnits(dataset.spec));
    ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
    ASSERT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 1u);
    // As after a drop and a create of the same name: the tables have no rows.
    DatasetSpec next = dataset.spec;
    next.incarnation = 2;
    ASSERT_OK(dataset.backend->DropDataset(dataset.spec));
    ASSERT_OK(dataset.backend->CreateDataset(next));
    EXPECT_THAT(ReadSome(*snapshot, kOnFirst), FailsWith(kAborted, "the snapshot has expired")) << engine;
  }
}

}  // namespace
}  // namespace kvstore::testing
