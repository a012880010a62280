#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail_point.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Answers that are kept of rows that are read again (engine/answer_cache.h). The history suite compares them
/// with a model; here is whether they are kept, and when they must not be.
namespace kvstore::testing {
namespace {

constexpr uint64_t kNow = 1'700'000'000'000;

/// A compaction of all that a dataset has, which has begun and does not go on before End. Must be ended.
class HeldCompaction {
 public:
  HeldCompaction(rocks::Engine& engine, const std::string& dataset) {
    rocksdb::DB& db = engine.db();
    rocksdb::ColumnFamilyHandle* const family = engine.FindFamily(dataset)->handle;
    EXPECT_TRUE(db.Flush({}, family).ok());
    SetFailPointHook([this](std::string_view name) {
      if (name != "compaction.begun" || held_.exchange(true)) return;
      begun_.set_value();
      end_.get_future().wait();
    });
    thread_ = std::thread([&db, family] {
      rocksdb::CompactRangeOptions options;
      options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      EXPECT_TRUE(db.CompactRange(options, family, nullptr, nullptr).ok());
    });
    begun_.get_future().wait();
  }
  void End() {
    end_.set_value();
    thread_.join();
    SetFailPointHook(nullptr);
  }

 private:
  std::promise<void> begun_;
  std::promise<void> end_;
  std::atomic<bool> held_{false};
  std::thread thread_;
};

class RowAnswersTest : public ::testing::Test {
 protected:
  RowAnswersTest() { Open({.cache_bytes = 8 << 20}); }

  void Open(const rocks::EngineOptions& options) {
    rows_.reset();
    backend_.reset();
    std::vector<DatasetSpec> known;
    if (opened_) known.push_back(spec_);
    auto dir = rocks::DataDir::Open(dir_.path(), /*create=*/true);
    EXPECT_OK(dir);
    auto backend = RocksDbBackend::Open(*std::move(dir), known, {}, options);
    EXPECT_OK(backend);
    backend_ = *std::move(backend);
    if (!std::exchange(opened_, true)) {
      EXPECT_OK(backend_->CreateDataset(spec_));
    }
    auto rows = backend_->OpenRows(spec_);
    EXPECT_OK(rows);
    rows_ = *std::move(rows);
  }
  void Alter() { ASSERT_OK(backend_->AlterDataset(spec_)); }

  void Put(const std::string& row, const std::string& column, const std::string& value,
           std::optional<uint64_t> timestamp = std::nullopt) {
    const CellWrite cell{.column = column, .value = value, .timestamp = timestamp};
    ASSERT_OK(rows_->Put(row, {&cell, 1}, {}));
  }
  /// Returns the values of a column, newest first.
  std::vector<std::string> Read(const std::string& row, const std::string& column, uint32_t versions = 1) {
    ReadOptions options{.versions = versions};
    options.columns = {column};
    const auto page = rows_->Get(row, options, std::nullopt);
    EXPECT_OK(page);
    std::vector<std::string> values;
    if (page->items.empty()) return values;
    for (const Cell& cell : page->items[0].cells) values.push_back(cell.value);
    return values;
  }
  /// Returns the names of the columns of a whole row.
  std::vector<std::string> Columns(const std::string& row, uint32_t limit = 100) {
    const auto page = rows_->Get(row, {.limit = limit}, std::nullopt);
    EXPECT_OK(page);
    std::vector<std::string> names;
    for (const Item& item : page->items) names.push_back(item.column);
    return names;
  }
  /// Reads as often as it takes that the answer is kept.
  void Keep(const std::string& row, const std::string& column, uint32_t versions = 1) {
    for (int i = 0; i < 2; ++i) Read(row, column, versions);
  }
  uint64_t found() const { return Ticks(rocksdb::ROW_CACHE_HIT); }
  uint64_t Ticks(rocksdb::Tickers ticker) const {
    return backend_->engine().statistics().getTickerCount(ticker);
  }

  using Values = std::vector<std::string>;

  const TempDir dir_;
  DatasetSpec spec_{.name = "rows", .backend = "test", .max_versions = 0, .incarnation = 1};
  bool opened_ = false;
  std::unique_ptr<RocksDbBackend> backend_;
  std::shared_ptr<RowStore> rows_;
};

TEST_F(RowAnswersTest, TheSecondReadIsKeptAndTheThirdFindsIt) {
  Put("a", "c", "1");
  Read("a", "c");
  EXPECT_EQ(found(), 0u);
  Read("a", "c");
  EXPECT_EQ(found(), 0u) << "a row that is read once is not worth the memory";
  EXPECT_EQ(Read("a", "c"), Values{"1"});
  EXPECT_EQ(found(), 1u);
}

TEST_F(RowAnswersTest, APutIsInTheNextAnswerWhichIsStillFound) {
  for (uint64_t i = 1; i <= 5; ++i) Put("a", "c", std::to_string(i), kNow + i);
  Keep("a", "c", 3);
  EXPECT_EQ(Read("a", "c", 3), (Values{"5", "4", "3"}));
  ASSERT_EQ(found(), 1u);
  Put("a", "c", "6", kNow + 6);
  EXPECT_EQ(Read("a", "c", 3), (Values{"6", "5", "4"}));
  Put("a", "c", "old", kNow);
  EXPECT_EQ(Read("a", "c", 3), (Values{"6", "5", "4"}));
  Put("a", "c", "5b", kNow + 5);
  EXPECT_EQ(Read("a", "c", 3), (Values{"6", "5b", "4"}));
  EXPECT_EQ(Read("a", "c", 2), (Values{"6", "5b"})) << "fewer are among those that are kept";
  EXPECT_EQ(found(), 5u) << "each of them";
  EXPECT_EQ(Read("a", "c", 4), (Values{"6", "5b", "4", "3"}));
  EXPECT_EQ(found(), 5u) << "more are not";
}

TEST_F(RowAnswersTest, APutIsInTheAnswersForTheWholeRowAndForItsColumns) {
  Put("a", "b", "1");
  Put("a", "d", "1");
  for (int i = 0; i < 2; ++i) Columns("a");
  Read("a", "d");
  Put("a", "c", "2");
  EXPECT_EQ(Columns("a"), (Values{"b", "c", "d"}));
  EXPECT_EQ(found(), 1u);
  EXPECT_EQ(Read("a", "d"), Values{"1"});
  EXPECT_EQ(found(), 1u) << "what was kept of another column is not found behind a write of the row";
  EXPECT_EQ(Columns("a", 2), (Values{"b", "c"})) << "the kept answer is larger than the page";
}

TEST_F(RowAnswersTest, ManyPutsAtOnceAreAllInTheNextAnswers) {
  Put("a", "c", "1", kNow);
  Put("b", "c", "1", kNow);
  Keep("a", "c", 5);
  Keep("b", "c", 5);
  const CellWrite two{.column = "c", .value = "2", .timestamp = kNow + 2};
  const CellWrite three{.column = "c", .value = "3", .timestamp = kNow + 3};
  const std::array<RowWrite, 3> writes = {{{.row = "a", .cells = {&two, 1}},
                                           {.row = "b", .cells = {&two, 1}},
                                           {.row = "a", .cells = {&three, 1}}}};
  for (const auto& put : rows_->PutMany(writes)) ASSERT_OK(put);
  EXPECT_EQ(Read("a", "c", 5), (Values{"3", "2", "1"})) << "two puts of one row";
  EXPECT_EQ(Read("b", "c", 5), (Values{"2", "1"}));
}

TEST_F(RowAnswersTest, DeletesAreInTheNextAnswers) {
  for (const char* column : {"b", "c", "d"}) Put("a", column, "1", kNow);
  Put("a", "d", "2", kNow + 1);
  const auto keep = [&] {
    for (int i = 0; i < 3; ++i) Columns("a");
  };
  keep();
  DeleteOptions columns;
  columns.columns = {"b"};
  ASSERT_OK(rows_->Delete("a", columns));
  EXPECT_EQ(Columns("a"), (Values{"c", "d"}));
  Keep("a", "d");
  DeleteOptions cells;
  cells.cells = {{.column = "d", .timestamp = kNow + 1}};
  ASSERT_OK(rows_->Delete("a", cells));
  EXPECT_EQ(Read("a", "d"), Values{"1"});
  keep();
  ASSERT_OK(rows_->Delete("a", {}));
  EXPECT_EQ(Columns("a"), Values{});
}

TEST_F(RowAnswersTest, SettingsAreThoseOfNow) {
  for (uint64_t i = 1; i <= 3; ++i) Put("a", "c", std::to_string(i), kNow + i);
  Keep("a", "c", 5);
  ASSERT_EQ(Read("a", "c", 5).size(), 3u);
  spec_.max_versions = 2;
  Alter();
  EXPECT_EQ(Read("a", "c", 5), (Values{"3", "2"}));
  Keep("a", "c", 5);
  Put("a", "c", "4", kNow + 4);
  EXPECT_EQ(Read("a", "c", 5), (Values{"4", "3"})) << "a put makes another one surplus";
  spec_.ttl_ms = 1000;
  Alter();
  EXPECT_EQ(Read("a", "c", 5), Values{}) << "all are years old";
}

TEST_F(RowAnswersTest, NothingIsKeptThatACompactionWithOlderSettingsDrops) {
  spec_.ttl_ms = 1000;
  Alter();
  Put("a", "c", "expired", kNow);
  // The compaction takes the settings of its beginning, and goes on when they have changed.
  HeldCompaction compaction(backend_->engine(), spec_.name);
  spec_.ttl_ms = 0;
  Alter();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read("a", "c"), Values{"expired"}) << "is visible again";
  compaction.End();
  EXPECT_EQ(Read("a", "c"), Values{}) << "the compaction has dropped it";
  EXPECT_TRUE(Columns("a").empty());
}

TEST_F(RowAnswersTest, TheyAreKeptWhileADatasetIsCompactedThatWasNeverAltered) {
  Put("a", "c", "1", kNow);
  // To open its store, as each server does, alters nothing.
  ASSERT_OK_AND_ASSIGN(rows_, backend_->OpenRows(spec_));
  HeldCompaction compaction(backend_->engine(), spec_.name);
  Keep("a", "c");
  EXPECT_EQ(Read("a", "c"), Values{"1"});
  EXPECT_EQ(found(), 1u);
  compaction.End();
}

TEST_F(RowAnswersTest, PagesThatAreLimitedInBytesAreThoseOfARead) {
  const std::string name("a\0", 2);
  Put("a", name, std::string(20, 'x'));
  Put("a", "b", std::string(20, 'x'));
  // Names with a zero byte count as longer than they are.
  for (size_t bytes = 40; bytes < 50; ++bytes) {
    const ReadOptions options{.max_bytes = bytes};
    const auto first = rows_->Get("a", options, std::nullopt);
    for (int i = 0; i < 3; ++i) Columns("a");
    const auto kept = rows_->Get("a", options, std::nullopt);
    ASSERT_OK(first);
    ASSERT_OK(kept);
    EXPECT_EQ(kept->items, first->items) << bytes;
    EXPECT_EQ(kept->next.has_value(), first->next.has_value()) << bytes;
    Put("a", "b", std::string(20, 'x'));
  }
}

TEST_F(RowAnswersTest, KeptCellsExpire) {
  spec_.ttl_ms = 400;
  Alter();
  Put("a", "c", "1");
  Keep("a", "c");
  EXPECT_TRUE(Eventually([&] { return Read("a", "c").empty(); }));
}

TEST_F(RowAnswersTest, RangesOfTimeAndLaterPagesAreNotAnsweredByWhatIsKept) {
  for (uint64_t i = 1; i <= 3; ++i) Put("a", "c", std::to_string(i), kNow + i);
  Keep("a", "c", 5);
  ReadOptions options{.versions = 5};
  options.columns = {"c"};
  options.time_range = {.start = 0, .end = kNow + 2};
  const auto page = rows_->Get("a", options, std::nullopt);
  ASSERT_OK(page);
  ASSERT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->items[0].cells.size(), 1u);
  EXPECT_EQ(found(), 0u);
}

TEST_F(RowAnswersTest, LargeAnswersAreNotKept) {
  Put("a", "c", std::string(rocks::AnswerCache::kMaxAnswerBytes, 'x'));
  Keep("a", "c");
  Read("a", "c");
  EXPECT_EQ(found(), 0u);
}

TEST_F(RowAnswersTest, KeptAnswersTakeNoMoreThanTheCache) {
  const std::string value(32 << 10, 'x');
  constexpr int kRowsKept = 1000;
  for (int i = 0; i < kRowsKept; ++i) {
    const std::string row = "row" + std::to_string(i);
    Put(row, "c", value);
    Keep(row, "c");
  }
  const size_t used = backend_->engine().CachedBytes();
  EXPECT_LE(used, uint64_t{8} << 20);
  EXPECT_GT(used, uint64_t{4} << 20) << "of 32 MB that were read again";
}

TEST_F(RowAnswersTest, TheyCanBeTurnedOff) {
  Open({.cache_bytes = 8 << 20, .cache_answers = false});
  Put("a", "c", "1");
  Keep("a", "c");
  EXPECT_EQ(Read("a", "c"), Values{"1"});
  EXPECT_EQ(found() + Ticks(rocksdb::ROW_CACHE_MISS), 0u);
  EXPECT_EQ(backend_->engine().answers(), nullptr);
}

TEST_F(RowAnswersTest, NobodyReadsLessThanWasAcknowledgedOrReadBefore) {
  // Writers raise the number of a row; readers must never see one go down, nor one below what was
  // acknowledged before their read began.
  constexpr int kRowsWritten = 3;
  constexpr int kWrites = 4'000;
  std::array<std::atomic<uint64_t>, kRowsWritten> acknowledged{};
  std::array<std::atomic<uint64_t>, kRowsWritten> seen{};
  std::atomic<bool> stop{false};
  std::atomic<int> faults{0};
  for (int i = 0; i < kRowsWritten; ++i) Put(std::to_string(i), "c", "0", 1);
  const auto raise = [](std::atomic<uint64_t>& to, uint64_t value) {
    for (uint64_t was = to; was < value && !to.compare_exchange_weak(was, value);) {
    }
  };
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      for (uint64_t n = static_cast<uint64_t>(r); !stop; ++n) {
        const size_t i = n % kRowsWritten;
        const uint64_t least = std::max(acknowledged[i].load(), seen[i].load());
        const Values values = Read(std::to_string(i), "c", static_cast<uint32_t>(1 + n % 2));
        const uint64_t value = values.empty() ? 0 : std::stoull(values[0]);
        if (value < least) ++faults;
        raise(seen[i], value);
      }
    });
  }
  // Two write the same rows, the one the even and the other the odd numbers, so that their puts cross.
  std::vector<std::thread> writers;
  for (uint64_t w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (uint64_t n = 1; n <= kWrites; ++n) {
        const uint64_t number = 2 * n + w;
        const size_t i = n % kRowsWritten;
        Put(std::to_string(i), "c", std::to_string(number), number);
        raise(acknowledged[i], number);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(faults, 0);
  EXPECT_GT(found(), 0u);
}

}  // namespace
}  // namespace kvstore::testing
