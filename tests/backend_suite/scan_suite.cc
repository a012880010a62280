#include <map>
#include <string>

#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"

namespace kvstore::testing {
namespace {

std::string Key(int i) { return "row" + std::to_string(1000 + i); }

void Fill(RowStore& rows, int count) {
  for (int i = 0; i < count; ++i) {
    const std::vector<CellWrite> cells = {{"a", "1", 1}, {"b", "2", 2}};
    ASSERT_OK(rows.Put(Key(i), cells, {}));
  }
}

std::vector<std::string> Keys(const std::vector<ScannedRow>& rows) {
  std::vector<std::string> keys;
  for (const ScannedRow& row : rows) keys.push_back(row.key);
  return keys;
}

TEST_P(ScanSuite, AnEmptyDatasetHasNoRows) {
  const auto rows = Rows();
  EXPECT_TRUE(ReadRange(GetParam(), *rows, {}, {})->empty());
  ASSERT_OK_AND_ASSIGN(const auto scan, rows->Scan({}, {}, std::nullopt));
  EXPECT_FALSE(scan->position());
}

TEST_P(ScanSuite, RangesIncludeTheirStartAndNotTheirEnd) {
  const auto rows = Rows();
  Fill(*rows, 5);
  EXPECT_EQ(ReadRange(GetParam(), *rows, {}, {})->size(), 5u);
  EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {Key(1), Key(3)}, {})),
            (std::vector<std::string>{Key(1), Key(2)}));
  EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {"row10025", ""}, {})),
            (std::vector<std::string>{Key(3), Key(4)}));
  EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {"", "row10005"}, {})), (std::vector<std::string>{Key(0)}));
  EXPECT_TRUE(ReadRange(GetParam(), *rows, {"s", ""}, {})->empty());
}

TEST_P(ScanSuite, RowsComeWholeAndOnlyWithWhatWasAskedFor) {
  const auto rows = Rows(0);
  Fill(*rows, 3);
  ASSERT_OK(PutCell(*rows, Key(1), "b", "3", 3));
  EXPECT_EQ(ToText(ReadRange(GetParam(), *rows, {}, {})->at(1).items), "a@1=1 b@3=3");
  EXPECT_EQ(ToText(ReadRange(GetParam(), *rows, {}, {.versions = 2})->at(1).items), "a@1=1 b@3=3 b@2=2");
  // Rows without anything to return are left out.
  EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {}, {.time_range = {3, 4}})),
            (std::vector<std::string>{Key(1)}));
  ASSERT_OK(rows->Delete(Key(0), {.columns = {{"a"}}}));
  EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {}, {.columns = {{"a", "z"}}})),
            (std::vector<std::string>{Key(1), Key(2)}));
  EXPECT_EQ(ToText(ReadRange(GetParam(), *rows, {}, {.columns = {{"a"}}})->at(0).items), "a@1=1");
}

TEST_P(ScanSuite, RowsInTheSameMemoryAreEachTheirOwn) {
  const auto rows = Rows();
  // The first name is the stored form of the second one, without its end mark.
  const std::vector<std::string> names = {{"a\0\xFF", 3}, {"a\0", 2}, {"a\0\xFF", 3}, {"a"}, {"b"},
                                          {"b"},          {}};
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_OK(PutCell(*rows, Key(static_cast<int>(i)), names[i], std::to_string(i), 1));
  }
  ASSERT_OK_AND_ASSIGN(const auto scan, rows->Scan({}, {}, std::nullopt));
  std::map<std::string, std::string> found;
  ScannedRow row;
  while (*scan->Next(row)) {
    ASSERT_EQ(row.items.size(), 1u);
    found[row.key] = row.items[0].column + "=" + row.items[0].cells.at(0).value;
  }
  ASSERT_EQ(found.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(found[Key(static_cast<int>(i))], names[i] + "=" + std::to_string(i));
  }
}

TEST_P(ScanSuite, AScanGoesOnWhereAnotherStopped) {
  const auto rows = Rows();
  Fill(*rows, 20);
  ASSERT_OK_AND_ASSIGN(const auto whole, ReadRange(GetParam(), *rows, {Key(2), Key(18)}, {}));
  for (const size_t pause : {1, 2, 7}) {
    EXPECT_EQ(Keys(*ReadRange(GetParam(), *rows, {Key(2), Key(18)}, {}, pause)), Keys(whole));
  }
}

TEST_P(ScanSuite, LargeRowsComeInPiecesThatCanBeResumed) {
  const auto rows = Rows(0);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 20; ++column) {
      for (uint64_t timestamp = 1; timestamp <= 3; ++timestamp) {
        ASSERT_OK(PutCell(*rows, Key(row), "c" + std::to_string(column), std::string(50, 'v'), timestamp));
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto whole, ReadRange(GetParam(), *rows, {}, {.versions = 3}));
  ASSERT_EQ(whole.size(), 3u);
  for (const size_t max_bytes : {1, 60, 500, 3000}) {
    for (const size_t pause : {0, 1, 3}) {
      ASSERT_OK_AND_ASSIGN(const auto pieces,
                           ReadRange(GetParam(), *rows, {}, {.versions = 3, .max_bytes = max_bytes}, pause));
      ASSERT_EQ(Keys(pieces), Keys(whole));
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(pieces[i].items, whole[i].items) << max_bytes;
    }
  }
}

TEST_P(ScanSuite, AResumedScanSurvivesDeletesAroundIt) {
  const auto rows = Rows();
  Fill(*rows, 6);
  ASSERT_OK_AND_ASSIGN(auto scan, rows->Scan({}, {}, std::nullopt));
  ScannedRow row;
  std::vector<std::string> order;
  while (*scan->Next(row)) order.push_back(row.key);
  ASSERT_EQ(order.size(), 6u);
  ASSERT_OK_AND_ASSIGN(scan, rows->Scan({}, {}, std::nullopt));
  ASSERT_TRUE(*scan->Next(row));
  ASSERT_TRUE(*scan->Next(row));
  const auto position = scan->position();
  ASSERT_OK(rows->Delete(order[1], {}));
  ASSERT_OK(rows->Delete(order[2], {}));
  ASSERT_OK_AND_ASSIGN(scan, rows->Scan({}, {}, position));
  ASSERT_TRUE(*scan->Next(row));
  EXPECT_EQ(row.key, order[3]);
}

TEST_P(ScanSuite, PartitionsCoverTheDatasetOnce) {
  const auto rows = Rows();
  Fill(*rows, 500);
  Reclaim();
  for (const size_t wanted : {1, 2, 8, 1000}) {
    ASSERT_OK_AND_ASSIGN(const auto partitions, rows->Partitions(wanted));
    ASSERT_FALSE(partitions.empty());
    std::map<std::string, int> seen;
    for (const Partition& partition : partitions) {
      ASSERT_OK_AND_ASSIGN(const auto part, ReadRange(GetParam(), *rows, partition.range, {}));
      for (const ScannedRow& row : part) ++seen[row.key];
    }
    EXPECT_EQ(seen.size(), 500u);
    for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key;
  }
}

}  // namespace
}  // namespace kvstore::testing
