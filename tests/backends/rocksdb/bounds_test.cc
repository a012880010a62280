#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/iterator.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/objects/mapping_store.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "backends/rocksdb/rows/reclaim.h"
#include "backends/rocksdb/rows/row_deleter.h"
#include "backends/rocksdb/rows/row_reader.h"
#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/eventually.h"

/// Bounds on the work of a call: every loop notices deadlines and cancellations, pages end and scans pause
/// once they have examined many cells, and deletes of wide rows cost the same each time.
namespace kvstore::testing {
namespace {

std::string EncodedRow(std::string_view row) {
  std::string key;
  AppendEncoded(key, row);
  return key;
}

/// An iterator over a row of columns "c0000000", "c0000001" and so on, each with a cell at timestamp 1. It
/// counts its moves.
class CountingIterator : public rocksdb::Iterator {
 public:
  explicit CountingIterator(uint64_t columns) : columns_(columns), row_(EncodedRow("r")) {}

  std::function<void(uint64_t moves)> on_move;
  uint64_t moves() const { return moves_; }

  static std::string Column(uint64_t i) { return fmt::format("c{:07}", i); }

  bool Valid() const override { return at_ < columns_; }
  void SeekToFirst() override { Go(0); }
  void SeekToLast() override { Go(columns_ - 1); }
  void Seek(const rocksdb::Slice& target) override {
    uint64_t low = 0;
    uint64_t high = columns_;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (rocksdb::Slice(Key(middle)).compare(target) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    Go(low);
  }
  void SeekForPrev(const rocksdb::Slice&) override { Go(columns_); }
  void Next() override { Go(at_ + 1); }
  void Prev() override { Go(at_ - 1); }
  rocksdb::Slice key() const override { return key_; }
  rocksdb::Slice value() const override { return "v"; }
  rocksdb::Status status() const override { return rocksdb::Status::OK(); }

 private:
  std::string Key(uint64_t i) const {
    std::string key = row_;
    AppendEncoded(key, Column(i));
    rocks::AppendTimestamp(key, 1);
    return key;
  }
  void Go(uint64_t to) {
    at_ = to;
    if (Valid()) key_ = Key(at_);
    ++moves_;
    if (on_move) on_move(moves_);
  }

  const uint64_t columns_;
  const std::string row_;
  std::string key_;
  uint64_t at_ = 0;
  uint64_t moves_ = 0;
};

rocks::RowQuery Newer() { return {.versions = 1, .start = 2, .end = 10, .limit = 100, .max_bytes = 1000}; }

TEST(RowReaderBounds, APageOfARowThatHasExpiredEndsAndTheNextGoesOnBehindIt) {
  CountingIterator it(5000);
  rocks::RowQuery query = Newer();
  query.max_examined = 1500;
  rocks::RowReader reader(it);
  std::vector<Item> items;
  std::optional<RowPosition> after;
  uint64_t pages = 0;
  for (;; ++pages) {
    const uint64_t before = it.moves();
    ASSERT_OK_AND_ASSIGN(auto next,
                         reader.Read(EncodedRow("r"), query, after ? &*after : nullptr, false, items));
    EXPECT_TRUE(items.empty());
    EXPECT_LE(it.moves() - before, query.max_examined + 1024 + 20);
    if (!next) break;
    ASSERT_TRUE(!after || after->column < next->column);
    after = next;
  }
  EXPECT_GE(pages, 1u);
  EXPECT_LE(it.moves(), 5000u + 3 * pages + 20);
}

TEST(RowReaderBounds, ACallThatIsCancelledEndsWithinAThousandCells) {
  for (const bool named : {false, true}) {
    CountingIterator it(100'000);
    std::atomic<bool> cancelled{false};
    it.on_move = [&](uint64_t moves) { cancelled = moves >= 3000; };
    rocks::RowQuery query = Newer();
    std::vector<std::string> columns;
    for (uint64_t i = 0; named && i < 50'000; ++i) columns.push_back(CountingIterator::Column(i));
    if (named) query.columns = &columns;
    const CallScope scope(CallLimits{.cancelled = &cancelled});
    rocks::RowReader reader(it);
    std::vector<Item> items;
    EXPECT_THAT(reader.Read(EncodedRow("r"), query, nullptr, false, items).status(),
                FailsWith(absl::StatusCode::kCancelled, ""));
    EXPECT_LE(it.moves(), 3000u + 1024);
  }
}

TEST(RowReaderBounds, NothingLiesBetweenANameAndTheOneBefore) {
  EXPECT_EQ(rocks::NameBefore(std::string("a\0", 2)), "a");
  EXPECT_EQ(rocks::NameBefore("b"), "a" + std::string(1023, '\xff'));
  EXPECT_EQ(rocks::NameBefore(std::string(1, '\0')), "");
}

class BoundsTest : public ::testing::Test {
 protected:
  BoundsTest() : backend_(*OpenRocksDb(dir_.path(), {}, /*cache_answers=*/false)) {}

  void Make(const DatasetSpec& spec) {
    ASSERT_OK(backend_->CreateDataset(spec));
    ASSERT_OK_AND_ASSIGN(rows_, backend_->OpenRows(spec));
    family_ = backend_->engine().FindFamily(spec.name);
  }
  void Put(std::string_view row, std::string_view column, uint64_t timestamp, std::string_view value = "v") {
    const CellWrite cell{column, value, timestamp};
    ASSERT_OK(rows_->Put(row, {&cell, 1}, {}));
  }
  /// Makes a row whose columns, except the last one, are deleted one by one.
  void MakeDeletedRow(const std::string& row, int columns) {
    std::vector<std::string> names;
    std::vector<CellWrite> cells;
    names.reserve(static_cast<size_t>(columns));
    for (int i = 0; i < columns; ++i) names.push_back(fmt::format("c{:06}", i));
    for (const std::string& name : names) cells.push_back({name, "v", 1});
    ASSERT_OK(rows_->Put(row, cells, {}));
    names.pop_back();
    ASSERT_OK(rows_->Delete(row, {.columns = names}));
  }
  uint64_t Property(const std::string& name) {
    uint64_t value = 0;
    EXPECT_TRUE(family_->db->GetIntProperty(family_->handle, name, &value));
    return value;
  }

  static constexpr int kDeleted = 3 * static_cast<int>(rocks::kMaxDeletedInARow);
  const DatasetSpec all_versions_{.name = "rows", .max_versions = 0, .incarnation = 1};
  const TempDir dir_;
  std::unique_ptr<RocksDbBackend> backend_;
  std::shared_ptr<RowStore> rows_;
  std::shared_ptr<rocks::Family> family_;
  std::atomic<bool> cancelled_{true};
  const CallLimits cancelled_call_{.cancelled = &cancelled_};
};

TEST_F(BoundsTest, WhatIsBehindManyDeletedCellsIsFoundUnlessTheCallIsOver) {
  Make(all_versions_);
  MakeDeletedRow("r", kDeleted);
  for (const bool flushed : {false, true}) {
    if (flushed) {
      ASSERT_TRUE(family_->db->Flush({}, family_->handle).ok());
    }
    ASSERT_OK_AND_ASSIGN(const RowPage page, rows_->Get("r", {}, std::nullopt));
    ASSERT_EQ(page.items.size(), 1u);
    EXPECT_EQ(page.items[0].column, fmt::format("c{:06}", kDeleted - 1));
    EXPECT_EQ(page.next, std::nullopt);
    const CallScope scope(cancelled_call_);
    const auto cancelled = FailsWith(absl::StatusCode::kCancelled, "");
    EXPECT_THAT(rows_->Get("r", {}, std::nullopt).status(), cancelled);
    EXPECT_THAT(rows_->Delete("r", {}), cancelled);
    ASSERT_OK_AND_ASSIGN(const auto scan, rows_->Scan({}, {}, std::nullopt));
    ScannedRow row;
    EXPECT_THAT(scan->Next(row).status(), cancelled);
    // A read of a named column does not go on past that column.
    EXPECT_OK(rows_->Get("r", {.columns = {{"c000000"}}}, std::nullopt));
  }
}

TEST_F(BoundsTest, DeletedVersionsOfAColumnAreNotPassedOneByOneOnTheWayToTheNext) {
  Make(all_versions_);
  constexpr uint64_t kColumns = 10;
  constexpr uint64_t kVersions = 8 * rocks::kMaxDeletedInARow;
  for (uint64_t i = 0; i < kColumns; ++i) {
    const std::string column = fmt::format("c{}", i);
    std::vector<CellWrite> cells;
    std::vector<CellName> surplus;
    for (uint64_t version = 1; version <= kVersions; ++version) {
      cells.push_back({column, "v", version});
      if (version > 1 && version < kVersions) surplus.push_back({column, version});
    }
    ASSERT_OK(rows_->Put("r", cells, {}));
    ASSERT_OK(rows_->Delete("r", {.cells = surplus}));
  }
  for (const bool flushed : {false, true}) {
    if (flushed) {
      ASSERT_TRUE(family_->db->Flush({}, family_->handle).ok());
    }
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    ASSERT_OK_AND_ASSIGN(const RowPage newest, rows_->Get("r", {}, std::nullopt));
    const uint64_t passed = rocksdb::get_perf_context()->internal_delete_skipped_count;
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    EXPECT_EQ(newest.items.size(), kColumns);
    // A deleted cell in memory counts twice until the iterator stops, and here once.
    EXPECT_GE(passed, rocks::kMaxDeletedInARow / 2)
        << "the first column is long, which nobody can know before";
    EXPECT_LE(passed, 2 * rocks::kMaxDeletedInARow);
    // A read of older versions gets those that are left.
    ASSERT_OK_AND_ASSIGN(const RowPage all, rows_->Get("r", {.versions = 5}, std::nullopt));
    ASSERT_EQ(all.items.size(), kColumns);
    for (const Item& item : all.items) {
      ASSERT_EQ(item.cells.size(), 2u);
      EXPECT_EQ(item.cells[0].timestamp, kVersions);
      EXPECT_EQ(item.cells[1].timestamp, 1u);
    }
  }
}

TEST_F(BoundsTest, AKeyThatWasPutAndDeletedManyTimesIsFoundAtLast) {
  Make(all_versions_);
  for (int i = 0; i < 2 * static_cast<int>(rocks::kMaxDeletedInARow); ++i) {
    Put("r", "c", 1);
    ASSERT_OK(rows_->Delete("r", {.columns = {{"c"}}}));
  }
  Put("r", "c", 1, "last");
  Put("r", "d", 1);
  ASSERT_OK_AND_ASSIGN(const RowPage page, rows_->Get("r", {}, std::nullopt));
  ASSERT_EQ(page.items.size(), 2u);
  EXPECT_EQ(page.items[0].cells[0].value, "last");
}

TEST_F(BoundsTest, AScanThatFindsNothingPausesAndGoesOnFromItsPosition) {
  Make(all_versions_);
  constexpr int kRows = 5000;
  for (int i = 0; i < kRows; ++i) Put(fmt::format("r{:05}", i), "c", 1);
  Put("r04500", "d", 1);
  MakeDeletedRow("s", kDeleted);
  Put("t", "d", 1);
  const ScanOptions options{.columns = {{"d"}}};
  for (const bool resumes : {false, true}) {
    ASSERT_OK_AND_ASSIGN(auto scan, rows_->Scan({}, options, std::nullopt));
    int pauses = 0;
    std::vector<std::string> found;
    ScannedRow row;
    for (;;) {
      const ScanBudget budget(1000);
      const auto more = scan->Next(row);
      if (IsPaused(more.status())) {
        ++pauses;
        ASSERT_LT(pauses, 100);
        const auto position = scan->position();
        ASSERT_TRUE(position);
        if (resumes) {
          ASSERT_OK_AND_ASSIGN(scan, rows_->Scan({}, options, position));
        }
        continue;
      }
      ASSERT_OK(more);
      if (!*more) break;
      found.push_back(row.key);
    }
    EXPECT_EQ(found, (std::vector<std::string>{"r04500", "t"}));
    EXPECT_GE(pauses, 4);
  }
  // Calls without a limit are not paused.
  ASSERT_OK_AND_ASSIGN(const auto scan, rows_->Scan({}, options, std::nullopt));
  ScannedRow row;
  for (int i = 0; i < 2; ++i) ASSERT_THAT(scan->Next(row), IsOk());
}

TEST_F(BoundsTest, AScanThatWasOverGoesOnWhereItWasWithTheNextCall) {
  Make(all_versions_);
  for (int i = 0; i < 3000; ++i) Put(fmt::format("r{:05}", i), "c", 1);
  Put("t", "d", 1);
  ASSERT_OK_AND_ASSIGN(const auto scan, rows_->Scan({}, {.columns = {{"d"}}}, std::nullopt));
  ScannedRow row;
  {
    const CallScope scope(cancelled_call_);
    ASSERT_THAT(scan->Next(row).status(), FailsWith(absl::StatusCode::kCancelled, ""));
    EXPECT_TRUE(scan->position());
  }
  ASSERT_OK_AND_ASSIGN(const bool more, scan->Next(row));
  EXPECT_TRUE(more);
  EXPECT_EQ(row.key, "t");
}

TEST_F(BoundsTest, AScanThatWasOverInTheFirstRowThatThereCanBeHasNoPositionBeforeIt) {
  Make(all_versions_);
  const std::string first(1, '\0');
  std::vector<std::string> names;
  std::vector<CellWrite> cells;
  for (int i = 0; i < 3000; ++i) names.push_back(fmt::format("c{:06}", i));
  for (const std::string& name : names) cells.push_back({name, "v", 1});
  ASSERT_OK(rows_->Put(first, cells, {}));
  ASSERT_OK_AND_ASSIGN(const auto scan, rows_->Scan({}, {}, std::nullopt));
  ScannedRow row;
  {
    const CallScope scope(cancelled_call_);
    ASSERT_THAT(scan->Next(row).status(), FailsWith(absl::StatusCode::kCancelled, ""));
    EXPECT_FALSE(scan->position()) << "a marker of a row without a name is refused";
  }
  ASSERT_OK_AND_ASSIGN(const bool more, scan->Next(row));
  EXPECT_TRUE(more);
  EXPECT_EQ(row.key, first);
}

TEST_F(BoundsTest, AListingThatSkipsManyEntriesSeesThatTheCallIsOver) {
  const DatasetSpec spec{.name = "mappings", .shape = Shape::kMappings, .incarnation = 2};
  ASSERT_OK(backend_->CreateDataset(spec));
  ASSERT_OK_AND_ASSIGN(const auto mappings, backend_->OpenMappings(spec));
  for (uint64_t i = 0; i < 2000; ++i) ASSERT_OK(mappings->Add(1, i, i));
  for (const bool descending : {false, true}) {
    MappingQuery query;
    query.limit = 1;
    query.offset = 1500;
    query.descending = descending;
    ASSERT_OK_AND_ASSIGN(const MappingList list, mappings->List(1, query));
    ASSERT_EQ(list.entries.size(), 1u);
    EXPECT_EQ(list.entries[0].to, descending ? 499u : 1500u);
    const CallScope scope(cancelled_call_);
    EXPECT_THAT(mappings->List(1, query).status(), FailsWith(absl::StatusCode::kCancelled, ""));
  }
}

TEST_F(BoundsTest, AMigrationsScanPausesAndGoesOnFromWhereItSays) {
  DatasetSpec spec = all_versions_;
  Make(spec);
  for (int i = 0; i < 5000; ++i) Put(fmt::format("r{:05}", i), "c", 1);
  MakeDeletedRow("s", kDeleted);
  spec.ttl_ms = 1000;
  ASSERT_OK(backend_->AlterDataset(spec));
  Put("t", "c", kMaxTimestamp - 1);
  ASSERT_OK_AND_ASSIGN(const auto endpoint, backend_->OpenForMigration(spec));
  UnitRange range;
  int pauses = 0;
  for (;;) {
    ASSERT_OK_AND_ASSIGN(const auto scan, endpoint->Scan(range, WallClockMs()));
    const ScanBudget budget(1000);
    const auto page = scan->Next();
    if (IsPaused(page.status())) {
      ASSERT_LT(++pauses, 100);
      ASSERT_GT(PausedAt(page.status()), range.start);
      range.start = PausedAt(page.status());
      continue;
    }
    ASSERT_OK(page);
    ASSERT_EQ(page->size(), 1u);
    break;
  }
  EXPECT_GE(pauses, 4);
  const CallScope scope(cancelled_call_);
  ASSERT_OK_AND_ASSIGN(const auto scan, endpoint->Scan({}, WallClockMs()));
  EXPECT_THAT(scan->Next().status(), FailsWith(absl::StatusCode::kCancelled, ""));
}

TEST_F(BoundsTest, ATrimLetsTheRowGoAfterEachThousandCells) {
  DatasetSpec spec = all_versions_;
  Make(spec);
  for (uint64_t i = 1; i <= 5000; ++i) Put("r", "c", i);
  spec.max_versions = 2;
  ASSERT_OK(backend_->AlterDataset(spec));
  const std::string column = EncodedRow("r") + EncodedRow("c");
  {
    const CallScope scope(cancelled_call_);
    EXPECT_THAT(rocks::TrimColumn(backend_->engine(), *family_, column).status(),
                FailsWith(absl::StatusCode::kCancelled, ""));
  }
  // One batch is trimmed before the first check.
  ASSERT_OK_AND_ASSIGN(const uint64_t rest, rocks::TrimColumn(backend_->engine(), *family_, column));
  EXPECT_EQ(rest, 5000u - 2 - 1024);
  ASSERT_OK_AND_ASSIGN(const RowPage page, rows_->Get("r", {.versions = 10}, std::nullopt));
  EXPECT_EQ(page.items[0].cells.size(), 2u);
}

TEST_F(BoundsTest, ATrimThatCountsManyVersionsSeesThatTheCallIsOver) {
  DatasetSpec spec = all_versions_;
  Make(spec);
  for (uint64_t i = 1; i <= 3000; ++i) Put("r", "c", i);
  spec.max_versions = 2990;
  ASSERT_OK(backend_->AlterDataset(spec));
  const std::string column = EncodedRow("r") + EncodedRow("c");
  {
    const CallScope scope(cancelled_call_);
    EXPECT_THAT(rocks::TrimColumn(backend_->engine(), *family_, column).status(),
                FailsWith(absl::StatusCode::kCancelled, ""));
  }
  // Nothing was trimmed before.
  ASSERT_OK_AND_ASSIGN(const uint64_t trimmed, rocks::TrimColumn(backend_->engine(), *family_, column));
  EXPECT_EQ(trimmed, 10u);
}

TEST_F(BoundsTest, ACompactionSeesThatItsTimeIsUp) {
  Make(all_versions_);
  Put("r", "c", 1);
  const CallScope scope(CallLimits{.deadline = CallLimits::Clock::now()});
  EXPECT_THAT(backend_->Reclaim(all_versions_, nullptr), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
}

TEST_F(BoundsTest, ManyDeletesOfWideRowsDoNotHeapUpRangesInMemory) {
  Make(all_versions_);
  std::vector<std::string> names;
  std::vector<CellWrite> cells;
  for (size_t i = 0; i <= rocks::kMaxPointDeletes; ++i) names.push_back(fmt::format("c{:05}", i));
  for (const std::string& name : names) cells.push_back({name, "v", 1});
  for (uint32_t i = 0; i < rocks::kMaxRanges + 1; ++i) {
    const std::string row = std::to_string(i);
    ASSERT_OK(rows_->Put(row, cells, {}));
    ASSERT_OK(rows_->Delete(row, {}));
    ASSERT_LT(family_->ranges, rocks::kMaxRanges);
  }
  ASSERT_TRUE(Eventually([&] { return Property("rocksdb.live-sst-files-size") > 0; }));
  ASSERT_OK_AND_ASSIGN(const auto scan, rows_->Scan({}, {}, std::nullopt));
  ScannedRow row;
  EXPECT_EQ(*scan->Next(row), false);
}

TEST_F(BoundsTest, ABatchOfReadsAnswersWithSixtyFourMebibytesAndSaysWhichEntriesAreLeft) {
  Make(all_versions_);
  const std::string large(kMaxValueBytes, 'x');
  for (int i = 0; i < 3; ++i) Put(std::to_string(i), "c", 1, large);
  std::vector<std::string> keys;
  std::vector<RowRead> reads;
  for (int i = 0; i < 30; ++i) keys.push_back(std::to_string(i % 3));
  for (const std::string& key : keys) reads.push_back({.row = key});
  const auto pages = rows_->GetMany(reads);
  size_t read = 0;
  for (const auto& page : pages) {
    if (page.ok()) {
      ++read;
    } else {
      EXPECT_THAT(page.status(), FailsWith(absl::StatusCode::kResourceExhausted, "another batch"));
    }
  }
  ASSERT_EQ(pages.size(), 30u);
  EXPECT_EQ(read, kMaxBatchBytes / kMaxValueBytes);
}

}  // namespace
}  // namespace kvstore::testing
