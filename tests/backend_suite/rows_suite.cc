#include <span>
#include <string>

#include "backend_api/batch_bytes.h"
#include "backend_api/scan_budget.h"
#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"

/// Reads of rows: versions, time ranges and expiry, pages.
namespace kvstore::testing {
namespace {

constexpr uint64_t kHourMs = 3600 * 1000;

/// Column names that sort close together in any encoding.
const std::vector<std::string> kHostile = {std::string(),
                                           std::string("\0", 1),
                                           std::string("\0\0", 2),
                                           std::string("\0\1", 2),
                                           std::string("\0\xFF", 2),
                                           "\1",
                                           "a",
                                           std::string("a\0", 2),
                                           "a\1",
                                           "a\xFE",
                                           "a\xFF",
                                           "a\xFF\xFF",
                                           "\xFE",
                                           "\xFF",
                                           "\xFF\xFF"};

void Fill(RowStore& rows, std::string_view row, int columns) {
  for (int i = 0; i < columns; ++i)
    ASSERT_OK(PutCell(rows, row, "c" + std::to_string(100 + i), std::to_string(i), 1));
}

TEST_P(RowsSuite, ARowThatIsNotThereIsEmpty) {
  const auto rows = Rows();
  EXPECT_EQ(Read(*rows, "a"), "");
  ASSERT_OK(PutCell(*rows, "ab", "x", "1", 1));
  EXPECT_EQ(Read(*rows, "a"), "");
  EXPECT_EQ(Read(*rows, "abc"), "");
}

TEST_P(RowsSuite, ColumnsComeInByteOrderAndCellsNewestFirst) {
  const auto rows = Rows(0);
  for (auto column = kHostile.rbegin(); column != kHostile.rend(); ++column) {
    for (const uint64_t timestamp : {5, 1, 9}) ASSERT_OK(PutCell(*rows, "r", *column, *column, timestamp));
  }
  ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*rows, "r", {.versions = 9}));
  ASSERT_EQ(items.size(), kHostile.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].column, kHostile[i]);
    EXPECT_EQ(items[i].cells, (std::vector<Cell>{{9, kHostile[i]}, {5, kHostile[i]}, {1, kHostile[i]}}));
  }
}

TEST_P(RowsSuite, APageMayBeginBehindAnyColumn) {
  const auto rows = Rows();
  for (const std::string& column : kHostile) ASSERT_OK(PutCell(*rows, "r", column, "v", 1));
  std::vector<std::string> names = kHostile;
  for (const char* missing : {"0", "aa", "b", "~"}) names.emplace_back(missing);
  for (const std::string& name : names) {
    const auto page = rows->Get("r", {}, RowPosition{.column = name});
    ASSERT_OK(page);
    std::vector<std::string> found;
    for (const Item& item : page->items) found.push_back(item.column);
    std::vector<std::string> expected;
    for (const std::string& column : kHostile) {
      if (column > name) expected.push_back(column);
    }
    EXPECT_EQ(found, expected) << name;
  }
}

TEST_P(RowsSuite, RowsDoNotRunIntoEachOther) {
  const auto rows = Rows(0);
  for (const std::string& row : kHostile) {
    if (row.empty()) continue;
    for (const std::string& column : kHostile) ASSERT_OK(PutCell(*rows, row, column, row + "/" + column, 1));
  }
  for (const std::string& row : kHostile) {
    if (row.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*rows, row, {.limit = 4}));
    ASSERT_EQ(items.size(), kHostile.size());
    for (size_t i = 0; i < items.size(); ++i) EXPECT_EQ(items[i].cells[0].value, row + "/" + kHostile[i]);
  }
}

TEST_P(RowsSuite, TheCallerChoosesColumns) {
  const auto rows = Rows();
  Fill(*rows, "r", 5);
  EXPECT_EQ(Read(*rows, "r", {.columns = {{"c103", "c100", "c9", "c103", ""}}}), "c100@1=0 c103@1=3");
  ASSERT_OK(PutCell(*rows, "r", "", "empty", 1));
  EXPECT_EQ(Read(*rows, "r", {.columns = {{""}}}), "@1=empty");
}

TEST_P(RowsSuite, MaxVersionsLimitsWhatIsVisible) {
  const auto rows = Rows(2);
  for (const uint64_t timestamp : {3, 1, 4, 2}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  EXPECT_EQ(Read(*rows, "r", {.versions = 1}), "x@4=v");
  EXPECT_EQ(Read(*rows, "r", {.versions = 10}), "x@4=v x@3=v");
}

TEST_P(RowsSuite, TimeRangeIncludesItsStartAndNotItsEnd) {
  const auto rows = Rows(0);
  for (const uint64_t timestamp : {uint64_t{0}, uint64_t{10}, uint64_t{20}, uint64_t{30}, kMaxTimestamp}) {
    ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  }
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {10, 30}}), "x@20=v x@10=v");
  EXPECT_EQ(Read(*rows, "r", {.versions = 1, .time_range = {10, 30}}), "x@20=v");
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {11, 20}}), "");
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {0, 1}}), "x@0=v");
  EXPECT_EQ(Read(*rows, "r", {.time_range = {31, kMaxTimestamp + 1}}), "x@9223372036854775807=v");
}

TEST_P(RowsSuite, TimeRangeChoosesAmongTheVisible) {
  const auto rows = Rows(2);
  for (const uint64_t timestamp : {1, 2, 3, 4}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {0, 4}}), "x@3=v");
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {0, 3}}), "");
  Reclaim();
  EXPECT_EQ(Read(*rows, "r", {.versions = 9, .time_range = {0, 4}}), "x@3=v");
}

TEST_P(RowsSuite, ExpiredCellsAreNotVisible) {
  const auto rows = Rows(2, kHourMs);
  ASSERT_OK(PutCell(*rows, "r", "now", "v"));
  ASSERT_OK_AND_ASSIGN(const auto page, rows->Get("r", {}, std::nullopt));
  const uint64_t now = page.items.at(0).cells.at(0).timestamp;
  ASSERT_OK(PutCell(*rows, "r", "old", "v", now - 2 * kHourMs));
  ASSERT_OK(PutCell(*rows, "r", "young", "v", now - kHourMs / 2));
  ASSERT_OK(PutCell(*rows, "r", "young", "v", now - 3 * kHourMs));
  const std::string expected =
      "now@" + std::to_string(now) + "=v young@" + std::to_string(now - kHourMs / 2) + "=v";
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), expected);
  Reclaim();
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), expected);
  // For a condition, too, an expired cell is absent.
  EXPECT_OK(PutCell(*rows, "r", "old", "new", std::nullopt, {.condition = Condition{.column = "old"}}));
}

TEST_P(RowsSuite, LoweringMaxVersionsHidesAtOnceAndRaisingHidesNothing) {
  const auto rows = Rows(3);
  for (const uint64_t timestamp : {1, 2, 3, 4}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  Alter({.max_versions = 1});
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@4=v");
  Alter({.max_versions = 0});
  EXPECT_THAT(Read(*rows, "r", {.versions = 9}), ::testing::StartsWith("x@4=v"));
  Alter({.max_versions = 1});
  Reclaim();
  Alter({.max_versions = 3});
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@4=v");
}

TEST_P(RowsSuite, LoweringTheTimeToLiveHidesAtOnce) {
  const auto rows = Rows(1);
  ASSERT_OK(PutCell(*rows, "r", "x", "v", 1));
  EXPECT_EQ(Read(*rows, "r"), "x@1=v");
  Alter({.ttl_ms = kHourMs});
  EXPECT_EQ(Read(*rows, "r"), "");
  Reclaim();
  Alter({.ttl_ms = 0});
  EXPECT_EQ(Read(*rows, "r"), "");
}

TEST_P(RowsSuite, ReclaimSaysWhatItRemoved) {
  const auto rows = Rows(2);
  for (uint64_t timestamp = 1; timestamp <= 10; ++timestamp)
    ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  ASSERT_OK_AND_ASSIGN(const ReclaimResult first, backend().Reclaim(spec(), nullptr));
  EXPECT_EQ(first.surplus_cells, 8u);
  ASSERT_OK_AND_ASSIGN(const ReclaimResult second, backend().Reclaim(spec(), nullptr));
  EXPECT_EQ(second.surplus_cells, 0u);
  Alter({.ttl_ms = 1});
  ASSERT_OK_AND_ASSIGN(const ReclaimResult third, backend().Reclaim(spec(), nullptr));
  EXPECT_EQ(third.expired_cells, 2u);
  EXPECT_EQ(Read(*rows, "r"), "");
}

TEST_P(RowsSuite, ReclaimCanBeStopped) {
  const auto rows = Rows(1);
  Fill(*rows, "r", 50);
  EXPECT_THAT(backend().Reclaim(spec(), [](uint64_t, uint64_t) { return false; }),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(ReadPages(*rows, "r", {})->size(), 50u);
  Reclaim();
  EXPECT_EQ(ReadPages(*rows, "r", {})->size(), 50u);
}

TEST_P(RowsSuite, PagesAreCutByColumns) {
  const auto rows = Rows();
  Fill(*rows, "r", 10);
  ASSERT_OK_AND_ASSIGN(const RowPage first, rows->Get("r", {.limit = 4}, std::nullopt));
  EXPECT_EQ(first.items.size(), 4u);
  ASSERT_TRUE(first.next);
  EXPECT_EQ(*first.next, (RowPosition{.column = "c103"}));
  ASSERT_OK_AND_ASSIGN(const RowPage second, rows->Get("r", {.limit = 6}, first.next));
  EXPECT_EQ(second.items.size(), 6u);
  EXPECT_EQ(second.items[0].column, "c104");
  // The page ends exactly at the last column, so there is no next one.
  EXPECT_FALSE(second.next);
}

TEST_P(RowsSuite, PagesOfChosenColumnsAreCutToo) {
  const auto rows = Rows();
  Fill(*rows, "r", 10);
  ReadOptions options{.columns = {{"c101", "c103", "c105", "zz"}}, .limit = 2};
  ASSERT_OK_AND_ASSIGN(const RowPage first, rows->Get("r", options, std::nullopt));
  EXPECT_EQ(ToText(first.items), "c101@1=1 c103@1=3");
  ASSERT_OK_AND_ASSIGN(const RowPage second, rows->Get("r", options, first.next));
  EXPECT_EQ(ToText(second.items), "c105@1=5");
  EXPECT_FALSE(second.next);
}

TEST_P(RowsSuite, PagesAreCutByBytesAlsoInsideAColumn) {
  const auto rows = Rows(0);
  for (uint64_t timestamp = 1; timestamp <= 9; ++timestamp) {
    ASSERT_OK(PutCell(*rows, "r", "a", std::string(100, 'a'), timestamp));
    ASSERT_OK(PutCell(*rows, "r", "b", std::string(100, 'b'), timestamp));
  }
  const ReadOptions whole{.versions = 7};
  ASSERT_OK_AND_ASSIGN(const auto expected, ReadPages(*rows, "r", whole));
  for (const size_t max_bytes : {1, 100, 101, 250, 700, 701, 702, 1000}) {
    ReadOptions options = whole;
    options.max_bytes = max_bytes;
    ASSERT_OK_AND_ASSIGN(const RowPage first, rows->Get("r", options, std::nullopt));
    size_t bytes = 0;
    for (const Item& item : first.items) bytes += item.column.size() + item.cells.size() * 100;
    EXPECT_TRUE(bytes <= max_bytes || bytes == 101) << bytes << " of " << max_bytes;
    ASSERT_OK_AND_ASSIGN(const auto items, ReadPages(*rows, "r", options));
    EXPECT_EQ(items, expected) << max_bytes;
  }
}

TEST_P(RowsSuite, PagesSurviveWritesBetweenThem) {
  const auto rows = Rows();
  Fill(*rows, "r", 6);
  ASSERT_OK_AND_ASSIGN(const RowPage first, rows->Get("r", {.limit = 3}, std::nullopt));
  // The column at which the page ended is deleted, others are put before and after it, and a value changes.
  ASSERT_OK(rows->Delete("r", {.columns = {{"c102"}}}));
  ASSERT_OK(PutCell(*rows, "r", "c101x", "new", 1));
  ASSERT_OK(PutCell(*rows, "r", "c102x", "new", 1));
  ASSERT_OK(PutCell(*rows, "r", "c103", "changed", 1));
  ASSERT_OK_AND_ASSIGN(const RowPage second, rows->Get("r", {.limit = 100}, first.next));
  EXPECT_EQ(ToText(second.items), "c102x@1=new c103@1=changed c104@1=4 c105@1=5");
}

TEST_P(RowsSuite, PagesInsideAColumnSurviveWritesBetweenThem) {
  const auto rows = Rows(0);
  for (const uint64_t timestamp : {10, 20, 30, 40}) ASSERT_OK(PutCell(*rows, "r", "a", "v", timestamp));
  ASSERT_OK(PutCell(*rows, "r", "b", "v", 1));
  ReadOptions options{.versions = 4, .max_bytes = 3};
  ASSERT_OK_AND_ASSIGN(const RowPage first, rows->Get("r", options, std::nullopt));
  EXPECT_EQ(ToText(first.items), "a@40=v a@30=v");
  ASSERT_OK(PutCell(*rows, "r", "a", "new", 50));
  ASSERT_OK(rows->Delete("r", {.cells = {{{"a", 30}}}}));
  options.max_bytes = 100;
  ASSERT_OK_AND_ASSIGN(const RowPage second, rows->Get("r", options, first.next));
  EXPECT_EQ(ToText(second.items), "a@20=v a@10=v b@1=v");
}

TEST_P(RowsSuite, BatchesOfReadsAnswerInOrder) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "a", "x", "1", 1));
  ASSERT_OK(PutCell(*rows, "b", "x", "2", 2));
  const std::vector<RowRead> reads = {{"b", {}}, {"none", {}}, {"a", {}}, {"b", {.time_range = {0, 2}}}};
  const auto pages = rows->GetMany(reads);
  ASSERT_EQ(pages.size(), 4u);
  EXPECT_EQ(ToText(pages[0]->items), "x@2=2");
  EXPECT_EQ(ToText(pages[1]->items), "");
  EXPECT_EQ(ToText(pages[2]->items), "x@1=1");
  EXPECT_EQ(ToText(pages[3]->items), "");
}

TEST_P(RowsSuite, AFullBatchHasItsFirstRow) {
  const auto rows = Rows();
  const std::string megabyte(1'000'000, 'x');
  const std::vector<std::string> keys = {"f", "e", "d", "c", "b", "a"};
  std::vector<RowRead> reads;
  for (const std::string& key : keys) {
    ASSERT_OK(PutCell(*rows, key, "x", megabyte, 1));
    reads.push_back({.row = key});
  }
  const SmallBatches small(1'500'000);
  for (std::span<const RowRead> left(reads); !left.empty(); left = left.subspan(1)) {
    const auto pages = rows->GetMany(left);
    ASSERT_EQ(pages.size(), left.size());
    ASSERT_OK(pages.front());
    EXPECT_EQ(pages.front()->items.size(), 1u);
    for (const auto& page : pages) EXPECT_TRUE(page.ok() || IsPaused(page.status())) << page.status();
  }
}

TEST_P(RowsSuite, TheLargestKeysAndValuesFit) {
  const auto rows = Rows();
  const std::string key(kMaxRowKeyBytes, '\0');
  const std::string column(kMaxColumnNameBytes, '\xFF');
  const std::string value(kMaxValueBytes, '\x80');
  ASSERT_OK(PutCell(*rows, key, column, value, kMaxTimestamp));
  ASSERT_OK_AND_ASSIGN(const RowPage page, rows->Get(key, {}, std::nullopt));
  ASSERT_EQ(page.items.size(), 1u);
  EXPECT_EQ(page.items[0].column, column);
  EXPECT_EQ(page.items[0].cells[0].timestamp, kMaxTimestamp);
  EXPECT_TRUE(page.items[0].cells[0].value == value);
}

TEST_P(RowsSuite, ManyVersionsArePassedOver) {
  const auto rows = Rows(0);
  for (uint64_t timestamp = 1; timestamp <= 300; ++timestamp) {
    const std::vector<CellWrite> cells = {
        {"a", "v", timestamp}, {"b", "v", timestamp}, {"c", "v", timestamp}};
    ASSERT_OK(rows->Put("r", cells, {}));
  }
  EXPECT_EQ(Read(*rows, "r"), "a@300=v b@300=v c@300=v");
  EXPECT_EQ(Read(*rows, "r", {.time_range = {0, 7}}), "a@6=v b@6=v c@6=v");
  EXPECT_EQ(Read(*rows, "r", {.columns = {{"b"}}, .versions = 2, .time_range = {0, 100}}), "b@99=v b@98=v");
}

}  // namespace
}  // namespace kvstore::testing
