#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend_api/scan_budget.h"
#include "backends/mysql/rows/row_writer.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/shift_clock.h"
#include "kvstore_api/call_scope.h"
#include "shardmap/mod_shard.h"
#include "tests/backends/mysql/tables_of_rows.h"
#include "tests/backends/mysql/test_fleet.h"

/// Rows: what the suite does not test because it holds for this backend only.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

const DatasetSpec kAllVersions{.name = "events", .max_versions = 0};

/// How many index entries the server of `row` has read so far.
uint64_t EntriesRead(std::string_view row) {
  return SumOfStatus(ServerOf(row),
                     "'Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', "
                     "'Handler_read_prev', 'Handler_read_rnd'");
}

TEST(Rows, LieOnTheModShardOfTheirKey) {
  Opened dataset(kAllVersions);
  ASSERT_OK(PutCell(*dataset.rows, "1.2.3.4", "ip", "v", 5));
  EXPECT_EQ(ServerOf("1.2.3.4").Run("SELECT row_key, column_name, ts, value FROM " + TableOf("1.2.3.4")),
            "1.2.3.4\tip\t5\tv\n");
}

TEST(Rows, TheNewestOfManyVersionsAreReadWithoutTheRest) {
  Opened dataset(kAllVersions);
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', seq DIV 10000), 1 + seq MOD 10000, 'v' FROM " +
                    Numbers(0, 29999));
  const uint64_t idle = EntriesRead(row);
  const uint64_t of_asking = EntriesRead(row) - idle;
  const auto read = [&](const ReadOptions& options) {
    const uint64_t before = EntriesRead(row);
    const auto items = ReadPages(*dataset.rows, row, options);
    EXPECT_OK(items);
    EXPECT_EQ(items->back().cells.size(), options.versions);
    return EntriesRead(row) - before - of_asking;
  };
  EXPECT_LE(read({.columns = {{"c1"}}, .versions = 50}), 51u);
  EXPECT_LE(read({.columns = {{"c1"}}, .versions = 50, .time_range = {100, 5000}}), 51u);
  // All columns take an optimistic statement, then one for each column, and one that finds no more.
  EXPECT_LE(read({.versions = 50}), 256u + 3 * 52 + 3);
}

/// How many prepared statements the server of `row` has run so far.
uint64_t StatementsRun(std::string_view row) { return SumOfStatus(ServerOf(row), "'Com_stmt_execute'"); }

TEST(Rows, NoStatementReadsAllExpiredCells) {
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = 3'600'000});
  const std::string row = "user";
  const std::string now = std::to_string(WallClockMs());
  // Many columns, then a long one, and after them a cell that has not expired.
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', LPAD(seq, 6, '0')), 1, 'v' FROM " + Numbers(1, 40000));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " SELECT 'user', 'd', seq, 'v' FROM " +
                    Numbers(1, 40000));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " VALUES ('user', 'e', " + now + ", 'v')");
  const auto expect_bounded = [&](const std::function<std::string()>& read) {
    const uint64_t entries = EntriesRead(row);
    const uint64_t statements = StatementsRun(row);
    EXPECT_EQ(read(), "e@" + now + "=v");
    EXPECT_LE(EntriesRead(row) - entries, (StatementsRun(row) - statements) * 20'000);
  };
  expect_bounded([&] { return Read(*dataset.rows, row); });
  expect_bounded([&] {
    const std::vector<RowRead> reads = {{row, {}}, {"none", {}}};
    return ToText(dataset.rows->GetMany(reads)[0]->items);
  });
}

TEST(Rows, AReadOfExpiredCellsEndsWithItsCaller) {
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = 3'600'000});
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', LPAD(seq, 6, '0')), 1, 'v' FROM " + Numbers(1, 60000));
  std::atomic<bool> cancelled{false};
  std::atomic<int> passed{0};
  SetFailPointHook([&](std::string_view reached) {
    if (reached != "row.passed") return;
    ++passed;
    cancelled = true;
  });
  {
    const CallScope scope(CallLimits{.cancelled = &cancelled});
    EXPECT_THAT(dataset.rows->Get(row, {}, std::nullopt).status(),
                FailsWith(absl::StatusCode::kCancelled, ""));
  }
  SetFailPointHook(nullptr);
  EXPECT_EQ(passed, 1) << "of four stretches";
  EXPECT_EQ(Read(*dataset.rows, row), "");
}

TEST(Rows, AnEmptyPageEndsAmongAMillionExpiredColumns) {
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = 3'600'000});
  const std::string row = "user";
  const std::string now = std::to_string(WallClockMs());
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', LPAD(seq, 7, '0')), 1, 'v' FROM " + Numbers(1, 1100000));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " VALUES ('user', 'e', " + now + ", 'v')");
  ASSERT_OK_AND_ASSIGN(const RowPage empty, dataset.rows->Get(row, {}, std::nullopt));
  EXPECT_TRUE(empty.items.empty());
  ASSERT_TRUE(empty.next.has_value());
  // The page ended after a column that it had looked at, and did not go on to the end of the row.
  EXPECT_GT(empty.next->column, "c1000000");
  EXPECT_LT(empty.next->column, "c1100000");
  ASSERT_OK_AND_ASSIGN(const RowPage last, dataset.rows->Get(row, {}, empty.next));
  EXPECT_EQ(ToText(last.items), "e@" + now + "=v");
  EXPECT_FALSE(last.next.has_value());
}

TEST(Rows, AColumnAmongManyExpiredOnesIsFound) {
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = 3'600'000});
  const std::string row = "user";
  const std::string now = std::to_string(WallClockMs());
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', LPAD(seq, 6, '0')), IF(seq MOD 700 = 0, " + now +
                    ", 1), 'v' FROM " + Numbers(1, 40000));
  ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*dataset.rows, row, {.limit = 20}));
  EXPECT_EQ(items.size(), 40'000u / 700);
  ASSERT_OK_AND_ASSIGN(const auto together, ReadPages(*dataset.rows, row, {.limit = 1000}));
  EXPECT_EQ(together, items);
}

TEST(Rows, LongRowsArePagedThroughOnce) {
  Opened dataset(kAllVersions);
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', seq MOD 700), 1 + seq, 'v' FROM " + Numbers(0, 6999));
  ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*dataset.rows, row, {.versions = 9999, .limit = 100}));
  ASSERT_EQ(items.size(), 700u);
  for (const Item& item : items) EXPECT_EQ(item.cells.size(), 10u);
  // A scan returns the same, in pieces.
  ASSERT_OK_AND_ASSIGN(const auto scanned,
                       ReadRange(MySql(""), *dataset.rows, {}, {.versions = 9999, .max_bytes = 500}));
  ASSERT_EQ(scanned.size(), 1u);
  EXPECT_EQ(scanned[0].items, items);
}

TEST(Rows, LargeValuesComeOneByOne) {
  Opened dataset(kAllVersions);
  const std::string large(3 << 20, 'x');
  for (const uint64_t timestamp : {1, 2, 3}) ASSERT_OK(PutCell(*dataset.rows, "r", "a", large, timestamp));
  ASSERT_OK(PutCell(*dataset.rows, "r", "b", "small", 1));
  ASSERT_OK_AND_ASSIGN(const RowPage page, dataset.rows->Get("r", {.versions = 9}, std::nullopt));
  // Two of the large values fit a page.
  ASSERT_EQ(page.items.size(), 1u);
  EXPECT_EQ(page.items[0].cells.size(), 2u);
  ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*dataset.rows, "r", {.versions = 9}));
  EXPECT_EQ(items.at(0).cells.size(), 3u);
  EXPECT_TRUE(items.at(0).cells[2].value == large);
  EXPECT_EQ(items.at(1).cells[0].value, "small");
  const std::vector<RowRead> reads = {{"r", {.versions = 9}}, {"none", {}}, {"r", {.columns = {{"b"}}}}};
  const auto pages = dataset.rows->GetMany(reads);
  EXPECT_EQ(pages[0]->items, page.items);
  EXPECT_EQ(ToText(pages[2]->items), "b@1=small");
}

TEST(Rows, AssignedTimestampsAreTheShardsNotTheCallers) {
  Opened dataset(kAllVersions);
  const std::string row = "r";
  // The shard's clock is ahead, as after the promotion of a host whose time is behind.
  const uint64_t ahead = WallClockMs() + 3'600'000;
  const std::string shard = mysql::DatabaseName(ShardSpace::kMod, ModShard(row, TestFleet::kShards));
  for (uint32_t slot = 0; slot < mysql::RowWriter::kClockSlots; ++slot) {
    ServerOf(row).Run("REPLACE INTO " + shard + ".`kv$clock` VALUES (" + std::to_string(slot) + ", " +
                      std::to_string(ahead) + ")");
  }
  const CellWrite cell{"x", "v", std::nullopt};
  EXPECT_EQ(dataset.rows->Put(row, {&cell, 1}, {})->timestamp, ahead + 1);
  EXPECT_EQ(dataset.rows->Put(row, {&cell, 1}, {})->timestamp, ahead + 2);
  ServerOf(row).Run("DELETE FROM " + shard + ".`kv$clock`");
}

/// Shifts the clock of this process, as if it ran on a host whose time is ahead or behind.
class ShiftedClock {
 public:
  explicit ShiftedClock(int64_t ms) { ShiftWallClock(ms); }
  ~ShiftedClock() { ShiftWallClock(0); }
  ShiftedClock(const ShiftedClock&) = delete;
  ShiftedClock& operator=(const ShiftedClock&) = delete;
};

TEST(Rows, ExpireByTheClockOfTheServerThatGivesTimestamps) {
  constexpr int64_t kHour = 3'600'000;
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = kHour / 2});
  const uint64_t now = WallClockMs();
  ASSERT_OK(PutCell(*dataset.rows, "r", "lives", "v", now));
  ASSERT_OK(PutCell(*dataset.rows, "r", "expired", "v", now - kHour * 3 / 4));
  ASSERT_OK(PutCell(*dataset.rows, "other", "lives", "v", now));
  const std::string lives = "lives@" + std::to_string(now) + "=v";
  const std::vector<RowRead> reads = {{"r", {}}, {"other", {}}, {"r", {}}};
  for (const int64_t shift : {kHour, -kHour}) {
    const ShiftedClock shifted(shift);
    EXPECT_EQ(Read(*dataset.rows, "r"), lives);
    for (const auto& page : dataset.rows->GetMany(reads)) EXPECT_EQ(ToText(page->items), lives);
    ASSERT_OK_AND_ASSIGN(const auto scanned, ReadRange(MySql(""), *dataset.rows, {}, {}));
    EXPECT_EQ(scanned.size(), 2u);
    for (const auto& row : scanned) EXPECT_EQ(ToText(row.items), lives);
    // A condition that the column is absent holds for an expired cell.
    EXPECT_OK(PutCell(*dataset.rows, "r", "expired", "v", now - kHour * 3 / 4,
                      {.condition = Condition{.column = "expired"}}));
    EXPECT_FALSE(
        PutCell(*dataset.rows, "r", "lives", "w", now, {.condition = Condition{.column = "lives"}}).ok());
  }
  const ShiftedClock shifted(kHour);
  ASSERT_OK_AND_ASSIGN(const ReclaimResult purged, dataset.backend->Reclaim(dataset.spec, nullptr));
  EXPECT_EQ(purged.expired_cells, 1u);
  EXPECT_EQ(Read(*dataset.rows, "r"), lives);
}

// Two backends stand for two processes: they share nothing but the servers.
TEST(Rows, TwoProcessesNeverOverwriteEachOther) {
  Opened dataset(kAllVersions);
  const auto other_backend = *SharedFleet().Open();
  const auto other = *other_backend->OpenRows(dataset.spec);
  const std::array<RowStore*, 2> stores = {dataset.rows.get(), other.get()};
  std::array<std::vector<uint64_t>, 4> assigned;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < assigned.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const CellWrite cell{"x", "v", std::nullopt};
        const RowWrite write{"r", {&cell, 1}, {}};
        const std::vector<RowWrite> batch(3, write);
        // Some puts are made alone, some in batches on the same row.
        if (i % 4 != 0) {
          assigned[t].push_back(*stores[t % 2]->Put("r", {&cell, 1}, {})->timestamp);
        } else {
          for (const auto& result : stores[t % 2]->PutMany(batch)) assigned[t].push_back(*result->timestamp);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> distinct;
  for (const auto& mine : assigned) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    distinct.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(distinct.size(), assigned.size() * 300);
  EXPECT_EQ(ReadPages(*dataset.rows, "r", {.versions = 9999})->at(0).cells.size(), distinct.size());
}

TEST(Rows, OfSixtyFourRacingPutsOfWhatIsAbsentOneWins) {
  Opened dataset(kAllVersions);
  const auto other_backend = *SharedFleet().Open();
  const auto other = *other_backend->OpenRows(dataset.spec);
  const std::array<RowStore*, 2> stores = {dataset.rows.get(), other.get()};
  for (int round = 0; round < 5; ++round) {
    const std::string row = "row" + std::to_string(round);
    // In every other round the puts have timestamps of their own: the condition does not depend on assigned
    // ones.
    std::atomic<int> won = 0;
    std::atomic<int> lost = 0;
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 64; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready < 64) std::this_thread::yield();
        const auto timestamp = round % 2 == 0 ? std::nullopt : std::optional(t);
        const auto put = PutCell(*stores[t % 2], row, "x", std::to_string(t), timestamp,
                                 {.condition = Condition{.column = "x"}});
        if (put.ok()) ++won;
        if (absl::IsAlreadyExists(put)) ++lost;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 63);
    EXPECT_EQ(dataset.rows->Get(row, {.versions = 99}, std::nullopt)->items.at(0).cells.size(), 1u);
  }
}

TEST(Rows, ConditionalPutsAndPlainOnesHaveOneOrder) {
  // A plain put that is acknowledged is never hidden behind a conditional one that did not see it.
  Opened dataset({.name = "events", .max_versions = 1});
  RowStore& rows = *dataset.rows;
  for (int round = 0; round < 200; ++round) {
    const std::string row = "r" + std::to_string(round);
    ASSERT_OK(PutCell(rows, row, "x", "before"));
    absl::Status conditional;
    std::thread thread([&] {
      conditional = PutCell(rows, row, "x", "conditional", std::nullopt,
                            {.condition = Condition{.column = "x", .equals = "before"}});
    });
    ASSERT_OK(PutCell(rows, row, "x", "plain"));
    thread.join();
    // The plain put has no condition. Either it came last, or it made the conditional one fail.
    EXPECT_EQ(rows.Get(row, {}, std::nullopt)->items[0].cells[0].value, "plain");
  }
}

TEST(Rows, HostileBytesAreOnlyBytes) {
  Opened dataset(kAllVersions);
  const std::vector<std::string> texts = {"'; DROP TABLE events; --",
                                          "\"\\`%_?",
                                          std::string("a\0b", 3),
                                          "a",
                                          "A",
                                          "a ",
                                          "\xF0\x9F\x93\x8C",
                                          "\xC3\x28",
                                          "\xFF\xFE",
                                          "*/ UNION SELECT 1"};
  for (const std::string& row : texts) {
    for (const std::string& column : texts) ASSERT_OK(PutCell(*dataset.rows, row, column, row + column, 1));
  }
  for (const std::string& row : texts) {
    const auto page = dataset.rows->Get(row, {}, std::nullopt);
    ASSERT_EQ(page->items.size(), texts.size());
    for (const Item& item : page->items) EXPECT_EQ(item.cells[0].value, row + item.column);
    ASSERT_OK(dataset.rows->Delete(row, {.columns = {{texts[0], texts[2]}}}));
    EXPECT_EQ(dataset.rows->Get(row, {}, std::nullopt)->items.size(), texts.size() - 2);
  }
}

TEST(Rows, PartitionsAreTheShards) {
  Opened dataset(kAllVersions);
  for (int i = 0; i < 100; ++i) ASSERT_OK(PutCell(*dataset.rows, "row" + std::to_string(i), "x", "v", 1));
  ASSERT_OK_AND_ASSIGN(const auto partitions, dataset.rows->Partitions(1));
  ASSERT_EQ(partitions.size(), TestFleet::kShards);
  EXPECT_EQ(partitions[3].name, "mod00003");
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    ASSERT_OK_AND_ASSIGN(const auto rows,
                         ReadRange(MySql(""), *dataset.rows, partitions[shard].range, {}, 2));
    for (const ScannedRow& row : rows) EXPECT_EQ(ModShard(row.key, TestFleet::kShards), shard);
  }
  EXPECT_THAT(dataset.rows->Scan({.shard = "mod00016"}, {}, std::nullopt),
              FailsWith(absl::StatusCode::kInvalidArgument, "partition: there is none named 'mod00016'"));
  const std::string elsewhere = ModShard("row1", TestFleet::kShards) == 0 ? "mod00001" : "mod00000";
  EXPECT_THAT(dataset.rows->Scan({.shard = elsewhere}, {}, ScanPosition{"row1", std::nullopt}),
              FailsWith(absl::StatusCode::kInvalidArgument, "another partition"));
}

TEST(Rows, AScanThatFindsNothingReadsItsRangeInPiecesAndSeesThatTheCallIsOver) {
  Opened dataset(kAllVersions);
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT CONCAT('r', LPAD(seq, 6, '0')), 'c', 1, 'v' FROM " + Numbers(0, 99999));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " SELECT 's', 'wide', seq, 'v' FROM " +
                    Numbers(2, 30000));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " VALUES ('t', 'd', 2, 'v'), ('u', 'c', 1, 'v')");
  RowRange range{.shard = mysql::DatabaseName(ShardSpace::kMod, ModShard(row, TestFleet::kShards))};
  const ScanOptions of_a_column{.columns = {{"d"}}};
  const ScanOptions of_a_time{.columns = {{"c", "d"}}, .time_range = {.start = 2}};
  for (const ScanOptions& options : {of_a_column, of_a_time}) {
    ASSERT_OK_AND_ASSIGN(const auto scan, dataset.rows->Scan(range, options, std::nullopt));
    int pauses = 0;
    ScannedRow found;
    for (;;) {
      const ScanBudget budget(1);
      const uint64_t before = EntriesRead(row);
      const auto more = scan->Next(found);
      // A window is passed once to find its end, and once to read it; the row 's' is in one window.
      EXPECT_LE(EntriesRead(row) - before, 2 * (16'384u + 30'000u) + 1000u);
      if (IsPaused(more.status())) {
        ASSERT_LT(++pauses, 100);
        std::atomic<bool> cancelled = true;
        const CallScope scope(CallLimits{.cancelled = &cancelled});
        EXPECT_THAT(scan->Next(found).status(), FailsWith(absl::StatusCode::kCancelled, ""));
        continue;
      }
      ASSERT_OK(more);
      if (!*more) break;
      EXPECT_EQ(found.key, "t");
    }
    EXPECT_GE(pauses, 6);
  }
  // Nothing after the range is read.
  range.start = "r000010";
  range.end = "r000020";
  const uint64_t before = EntriesRead(row);
  ASSERT_OK_AND_ASSIGN(const auto scan, dataset.rows->Scan(range, of_a_column, std::nullopt));
  ScannedRow found;
  ASSERT_OK_AND_ASSIGN(const bool more, scan->Next(found));
  EXPECT_FALSE(more);
  EXPECT_LE(EntriesRead(row) - before, 1000u);
}

TEST(Rows, AScanPausesOnlyWhereItHasGotFurther) {
  Opened dataset(kAllVersions);
  const auto pauses = [&](const ScanOptions& options) {
    std::set<std::string> positions;
    const auto scan = dataset.rows->Scan({}, options, std::nullopt);
    EXPECT_OK(scan);
    for (;;) {
      const ScanBudget budget(1);
      ScannedRow row;
      const auto more = (*scan)->Next(row);
      if (!IsPaused(more.status())) {
        EXPECT_OK(more);
        if (!more.ok() || !*more) return positions.size();
        continue;
      }
      const auto position = (*scan)->position();
      if (!position || !positions.insert(position->row).second) return size_t{1000};
    }
  };
  // A position is a row, so that there is none after shards without any.
  EXPECT_EQ(pauses({}), 0u);
  EXPECT_EQ(pauses({.columns = {{"d"}}}), 0u);
  std::set<uint32_t> shards;
  for (const std::string row : {"row1", "row2", "row3"}) {
    ASSERT_OK(PutCell(*dataset.rows, row, "c", "v", 1));
    shards.insert(ModShard(row, TestFleet::kShards));
  }
  EXPECT_EQ(pauses({}), 0u);
  EXPECT_EQ(pauses({.columns = {{"d"}}}), shards.size());
}

TEST(Rows, AWriteThatMustBeForcedIsRefusedWhereTheServerDoesNotForce) {
  Opened dataset(kAllVersions);
  EXPECT_THAT(PutCell(*dataset.rows, "r", "x", "v", 1, {.sync = true}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "innodb_flush_log_at_trx_commit"));
  EXPECT_EQ(Read(*dataset.rows, "r"), "");
  // Nor does it take the other writes of a batch with it.
  const CellWrite cell{"x", "v", 1};
  const std::vector<RowWrite> writes = {
      {"r", {&cell, 1}, {}}, {"r", {&cell, 1}, {.sync = true}}, {"r", {&cell, 1}, {}}};
  const auto results = dataset.rows->PutMany(writes);
  EXPECT_OK(results[0]);
  EXPECT_THAT(results[1], FailsWith(absl::StatusCode::kFailedPrecondition, "innodb_flush_log_at_trx_commit"));
  EXPECT_OK(results[2]);
  DatasetSpec forced{
      .name = "forced", .backend = "mysql", .durability = Durability::kMachine, .incarnation = 9};
  EXPECT_THAT(dataset.backend->CreateDataset(forced),
              FailsWith(absl::StatusCode::kFailedPrecondition, "machine"));
}

}  // namespace
}  // namespace kvstore::testing
