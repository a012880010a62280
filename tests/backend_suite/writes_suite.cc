#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"

/// Writes of rows: timestamps, conditions, deletes, batches.
namespace kvstore::testing {
namespace {

constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

WriteOptions IfAbsent(std::string_view column) { return {.condition = Condition{.column = column}}; }
WriteOptions IfEquals(std::string_view column, std::string_view value) {
  return {.condition = Condition{.column = column, .equals = value}};
}

TEST_P(WritesSuite, TheSameCellIsOverwritten) {
  const auto rows = Rows(0);
  ASSERT_OK(PutCell(*rows, "r", "x", "old", 5));
  ASSERT_OK(PutCell(*rows, "r", "x", "new", 5));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@5=new");
  ASSERT_OK(PutCell(*rows, "r", "x", "", 5));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@5=");
}

TEST_P(WritesSuite, OlderTimestampsMayBePutLater) {
  const auto rows = Rows(0);
  for (const uint64_t timestamp : {9, 3, 6}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@9=v x@6=v x@3=v");
}

TEST_P(WritesSuite, OnePutMayMixGivenAndAssignedTimestamps) {
  const auto rows = Rows(0);
  const std::vector<CellWrite> given = {{"a", "1", 5}};
  ASSERT_OK_AND_ASSIGN(const PutResult none, rows->Put("r", given, {}));
  EXPECT_FALSE(none.timestamp);
  const std::vector<CellWrite> mixed = {{"a", "2", 6}, {"a", "3"}, {"b", "4"}};
  ASSERT_OK_AND_ASSIGN(const PutResult result, rows->Put("r", mixed, {}));
  ASSERT_TRUE(result.timestamp);
  const std::string at = std::to_string(*result.timestamp);
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "a@" + at + "=3 a@6=2 a@5=1 b@" + at + "=4");
}

TEST_P(WritesSuite, AssignedTimestampsGrowAlsoAcrossARestart) {
  auto rows = Rows(0);
  uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) {
      const CellWrite cell{"x", "v", std::nullopt};
      ASSERT_OK_AND_ASSIGN(const PutResult result, rows->Put("r", {&cell, 1}, {}));
      ASSERT_GT(result.timestamp.value(), last);
      last = *result.timestamp;
    }
    rows.reset();
    Reopen();
    rows = *backend().OpenRows(spec());
  }
  EXPECT_EQ(ReadPages(*rows, "r", {.versions = 10'000})->at(0).cells.size(), 6000u);
}

TEST_P(WritesSuite, ConcurrentPutsNeverOverwriteEachOther) {
  const auto rows = Rows(0);
  constexpr int kThreads = 4;
  constexpr int kPuts = 500;
  std::vector<std::vector<uint64_t>> assigned(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPuts; ++i) {
        const CellWrite cell{"x", "v", std::nullopt};
        const auto result = rows->Put("r", {&cell, 1}, {});
        if (result.ok()) assigned[t].push_back(*result->timestamp);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> distinct;
  for (const auto& mine : assigned) {
    EXPECT_EQ(mine.size(), size_t{kPuts});
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    distinct.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(distinct.size(), size_t{kThreads * kPuts});
  EXPECT_EQ(ReadPages(*rows, "r", {.versions = 10'000})->at(0).cells.size(), size_t{kThreads * kPuts});
}

TEST_P(WritesSuite, ConditionAbsent) {
  const auto rows = Rows();
  EXPECT_OK(PutCell(*rows, "r", "x", "1", 1, IfAbsent("x")));
  EXPECT_THAT(PutCell(*rows, "r", "x", "2", 2, IfAbsent("x")), FailsWith(kExists, ""));
  EXPECT_OK(PutCell(*rows, "r", "y", "3", 3, IfAbsent("z")));
  EXPECT_EQ(Read(*rows, "r"), "x@1=1 y@3=3");
  ASSERT_OK(rows->Delete("r", {.columns = {{"x"}}}));
  EXPECT_OK(PutCell(*rows, "r", "x", "4", 1, IfAbsent("x")));
}

TEST_P(WritesSuite, ConditionEqualsComparesTheNewestValue) {
  const auto rows = Rows(0);
  EXPECT_THAT(PutCell(*rows, "r", "x", "1", 1, IfEquals("x", "")), FailsWith(kPrecondition, ""));
  ASSERT_OK(PutCell(*rows, "r", "x", "old", 1));
  ASSERT_OK(PutCell(*rows, "r", "x", "new", 2));
  EXPECT_THAT(PutCell(*rows, "r", "x", "3", 3, IfEquals("x", "old")), FailsWith(kPrecondition, ""));
  EXPECT_OK(PutCell(*rows, "r", "x", "3", 3, IfEquals("x", "new")));
  EXPECT_EQ(Read(*rows, "r"), "x@3=3");
}

TEST_P(WritesSuite, ConcurrentConditionalPutsLoseNoUpdate) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "n", "0"));
  constexpr int kThreads = 4;
  constexpr int kIncrements = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kIncrements;) {
        const auto page = rows->Get("r", {}, std::nullopt);
        const std::string before = page->items.at(0).cells.at(0).value;
        const auto put = PutCell(*rows, "r", "n", std::to_string(std::stoi(before) + 1), std::nullopt,
                                 IfEquals("n", before));
        if (put.ok()) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rows->Get("r", {}, std::nullopt)->items[0].cells[0].value,
            std::to_string(kThreads * kIncrements));
}

TEST_P(WritesSuite, DeletesOfRowsColumnsAndCells) {
  const auto rows = Rows(0);
  const auto fill = [&] {
    for (const char* column : {"a", "b", "c"}) {
      for (const uint64_t timestamp : {1, 2}) ASSERT_OK(PutCell(*rows, "r", column, "v", timestamp));
    }
  };
  fill();
  ASSERT_OK(rows->Delete("r", {.cells = {{{"a", 2}, {"b", 1}, {"z", 1}}}}));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "a@1=v b@2=v c@2=v c@1=v");
  ASSERT_OK(rows->Delete("r", {.columns = {{"c", "a", "z"}}}));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "b@2=v");
  fill();
  ASSERT_OK(PutCell(*rows, "r2", "x", "v", 1));
  ASSERT_OK(rows->Delete("r", {}));
  ASSERT_OK(rows->Delete("r", {}));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "");
  EXPECT_EQ(Read(*rows, "r2"), "x@1=v");
}

TEST_P(WritesSuite, SingleCellsAreDeletedOnlyWhereAllVersionsAreKept) {
  const auto rows = Rows(3);
  ASSERT_OK(PutCell(*rows, "r", "x", "v", 1));
  EXPECT_THAT(rows->Delete("r", {.cells = {{{"x", 1}}}}), FailsWith(kPrecondition, "max_versions"));
  EXPECT_EQ(Read(*rows, "r"), "x@1=v");
}

TEST_P(WritesSuite, AnOlderPutAfterADeleteIsVisible) {
  const auto rows = Rows(1);
  for (const uint64_t timestamp : {10, 20, 30}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  ASSERT_OK(rows->Delete("r", {.columns = {{"x"}}}));
  ASSERT_OK(PutCell(*rows, "r", "x", "again", 5));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@5=again");
  Reclaim();
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@5=again");
}

TEST_P(WritesSuite, LargeRowsAreDeletedWholly) {
  const auto rows = Rows(0);
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) names.push_back("column" + std::to_string(i));
  std::vector<CellWrite> cells;
  for (const std::string& name : names) cells.push_back({name, "v", 7});
  for (const char* row : {"q", "r", "s"}) ASSERT_OK(rows->Put(row, cells, {}));
  ASSERT_OK(rows->Delete("r", {}));
  EXPECT_EQ(Read(*rows, "r"), "");
  EXPECT_EQ(ReadPages(*rows, "q", {})->size(), 2000u);
  EXPECT_EQ(ReadPages(*rows, "s", {})->size(), 2000u);
  ASSERT_OK(PutCell(*rows, "r", "column7", "old", 1));
  Reclaim();
  EXPECT_EQ(Read(*rows, "r"), "column7@1=old");
}

TEST_P(WritesSuite, BatchesOfPutsSucceedOrFailRowByRow) {
  const auto rows = Rows(0);
  const std::vector<CellWrite> one = {{"x", "1"}};
  const std::vector<CellWrite> two = {{"x", "2"}};
  const std::vector<RowWrite> writes = {{"a", one, {}},
                                        {"b", one, IfEquals("x", "nothing")},
                                        {"a", two, {}},
                                        {"c", one, IfAbsent("x")},
                                        {"c", two, IfAbsent("x")}};
  const auto results = rows->PutMany(writes);
  ASSERT_EQ(results.size(), 5u);
  ASSERT_OK(results[0]);
  EXPECT_THAT(results[1], FailsWith(kPrecondition, ""));
  ASSERT_OK(results[2]);
  EXPECT_OK(results[3]);
  EXPECT_THAT(results[4], FailsWith(kExists, ""));
  // Two puts of one row in one batch get timestamps from the store: both are stored, in their order.
  EXPECT_LT(*results[0]->timestamp, *results[2]->timestamp);
  EXPECT_EQ(Read(*rows, "a", {.versions = 9}), "x@" + std::to_string(*results[2]->timestamp) + "=2 x@" +
                                                   std::to_string(*results[0]->timestamp) + "=1");
  EXPECT_EQ(Read(*rows, "b"), "");
}

TEST_P(WritesSuite, BatchesOfPutsKeepTheirOrderWithinACell) {
  const auto rows = Rows();
  std::vector<std::string> values;
  for (int i = 0; i < 100; ++i) values.push_back(std::to_string(i));
  std::vector<CellWrite> cells;
  for (const std::string& value : values) cells.push_back({"x", value, 5});
  std::vector<RowWrite> writes;
  for (const CellWrite& cell : cells) writes.push_back({"r", {&cell, 1}, {}});
  for (const auto& result : rows->PutMany(writes)) ASSERT_OK(result);
  EXPECT_EQ(Read(*rows, "r"), "x@5=99");
}

TEST_P(WritesSuite, BatchesOfDeletesAnswerRowByRow) {
  const auto rows = Rows(2);
  for (const char* row : {"a", "b", "c"}) ASSERT_OK(PutCell(*rows, row, "x", "v", 1));
  const std::vector<RowDelete> deletes = {
      {"a", {}}, {"b", {.cells = {{{"x", 1}}}}}, {"none", {}}, {"c", {.columns = {{"x"}}}}};
  const auto results = rows->DeleteMany(deletes);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_OK(results[0]);
  EXPECT_THAT(results[1], FailsWith(kPrecondition, ""));
  EXPECT_OK(results[2]);
  EXPECT_OK(results[3]);
  EXPECT_EQ(Read(*rows, "a") + Read(*rows, "b") + Read(*rows, "c"), "x@1=v");
}

TEST_P(WritesSuite, WritesAndDeletesOfOneRowAreAtomic) {
  const auto rows = Rows(0);
  // A writer replaces the whole row again and again: a reader must see all of one state, or nothing.
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 1; i <= 300; ++i) {
      const std::string value = std::to_string(i);
      std::vector<CellWrite> cells;
      for (const char* column : {"a", "b", "c", "d"}) cells.push_back({column, value, 1});
      if (!rows->Put("r", cells, {}).ok() || (i % 3 == 0 && !rows->Delete("r", {}).ok())) break;
    }
    stop = true;
  });
  while (!stop) {
    const auto page = rows->Get("r", {}, std::nullopt);
    ASSERT_OK(page);
    if (page->items.empty()) continue;
    ASSERT_EQ(page->items.size(), 4u);
    for (const Item& item : page->items) ASSERT_EQ(item.cells[0].value, page->items[0].cells[0].value);
  }
  writer.join();
}

}  // namespace
}  // namespace kvstore::testing
