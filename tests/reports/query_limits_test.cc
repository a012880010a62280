#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "kvstore_api/call_scope.h"
#include "reports/group_table.h"
#include "reports/hyperloglog.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/clicks_report.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::MemoryStore;

/// A report with a series for each of 100 countries, and an hourly point in each for two days.
class QueryLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        const ReportInfo info,
        metadata_.Create(testing::ClicksReport({.resolution_ms = 1'000, .period_s = 86'400, .salts = 4})));
    Batch batch(info);
    for (int country = 0; country < 100; ++country) {
      const std::string name = "country " + std::to_string(country);
      const std::optional<std::string_view> segments[] = {name};
      for (int64_t hour = 0; hour < 48; ++hour) {
        ASSERT_OK(batch.Add(0, hour * 3'600'000, segments, Number::Integer(1)));
      }
    }
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
    query_ = {.report = "r",
              .metrics = {{.name = "clicks"}},
              .from = 0,
              .to = 2 * 86'400'000,
              .group_by = {"country"}};
  }
  void IsExhausted(const std::string& text) {
    EXPECT_THAT(RunQuery(metadata_, query_), FailsWith(absl::StatusCode::kResourceExhausted, text));
  }
  void AddMetric(const char* name, MetricKind kind) {
    const Metric metric = {.name = name, .kind = kind};
    ASSERT_OK(metadata_.AddMetrics("r", {&metric, 1}));
  }
  /// The least memory with which the query has an answer, to a kilobyte.
  size_t LeastMemory() {
    size_t& limit = query_.limits.max_memory_bytes;
    size_t too_little = 0;
    limit = size_t{1} << 26;
    EXPECT_OK(RunQuery(metadata_, query_));
    size_t enough = limit;
    while (enough - too_little > 1'000) {
      limit = (enough + too_little) / 2;
      (RunQuery(metadata_, query_).ok() ? enough : too_little) = limit;
    }
    return enough;
  }

  MemoryStore store_;
  Metadata metadata_{store_, "reports"};
  Query query_;
};

TEST_F(QueryLimitsTest, Groups) {
  query_.limits.max_groups = 100;
  EXPECT_OK(RunQuery(metadata_, query_));
  query_.limits.max_groups = 99;
  IsExhausted("more than 99 groups");
  query_.limits.max_groups = 3;
  IsExhausted("more than 3 groups");
}

TEST_F(QueryLimitsTest, Memory) {
  query_.step = *ParseStep("1h");
  query_.limits.max_memory_bytes = 10'000;
  IsExhausted("more than 10000 bytes of memory");
  query_.step = std::nullopt;
  query_.group_by = {};
  EXPECT_OK(RunQuery(metadata_, query_));
  query_.function = *ParseFunction("function", "p50");
  query_.limits.max_memory_bytes = 20'000;
  IsExhausted("more than 20000 bytes of memory");
}

TEST_F(QueryLimitsTest, TheAnswerIsCountedWhateverTheAggregatesTake) {
  // Filters that match nothing have no aggregates, but a value for each step.
  query_.group_by = {};
  query_.filters.assign(1'000, {.where = {{"country", std::vector<std::string>{"nobody"}}}});
  query_.step = *ParseStep("1h");
  query_.limits.max_memory_bytes = 1'000'000;
  EXPECT_OK(RunQuery(metadata_, query_));
  query_.fill = Fill::kZero;
  IsExhausted("more than 1000000 bytes of memory");
}

TEST_F(QueryLimitsTest, MemoryOfExactSumsOfRealNumbers) {
  query_.step = *ParseStep("1h");
  query_.limits.max_memory_bytes = 2'000'000;
  EXPECT_OK(RunQuery(metadata_, query_)) << "4,800 sums of integers";
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("r", std::vector<std::string>{"clicks"}));
  Batch batch(info);
  for (int country = 0; country < 100; ++country) {
    const std::string name = "country " + std::to_string(country);
    const std::optional<std::string_view> segments[] = {name};
    for (int64_t hour = 0; hour < 48; ++hour) {
      ASSERT_OK(batch.Add(0, hour * 3'600'000, segments, Number::Real(0.5)));
    }
  }
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  IsExhausted("more than 2000000 bytes of memory");
}

TEST_F(QueryLimitsTest, WhatATopIsRankedByIsCounted) {
  AddMetric("users", MetricKind::kDistinct);
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("r", std::vector<std::string>{"users"}));
  Batch batch(info);
  for (int country = 0; country < 100; ++country) {
    const std::string name = "country " + std::to_string(country);
    const std::optional<std::string_view> segments[] = {name};
    ASSERT_OK(batch.AddDistinct(0, 0, segments, std::vector<std::string>{name}));
  }
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  query_.metrics = {{.name = "users"}};
  query_.function = *ParseFunction("function", "distinct");
  query_.step = *ParseStep("1d");
  const size_t all = LeastMemory();
  // All of them, so that the answer has the same size.
  query_.top = {.n = 100, .by = query_.function};
  EXPECT_GE(LeastMemory() + 1'000, all + 100 * sizeof(HyperLogLog))
      << "a set of the whole range for each country";
}

TEST_F(QueryLimitsTest, MemoryOfADistributionThatHasNumbersOfAllSizes) {
  AddMetric("delay", MetricKind::kDistribution);
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("r", std::vector<std::string>{"delay"}));
  Batch batch(info);
  std::vector<double> values;
  for (double value = 1; values.size() < 2'000; value *= 1.05) values.push_back(value);
  const std::optional<std::string_view> segments[] = {"country 0"};
  ASSERT_OK(batch.AddDistribution(0, 0, segments, values));
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  query_.metrics = {{.name = "delay"}};
  query_.function = *ParseFunction("function", "p50");
  EXPECT_GE(LeastMemory(), 2'000 * (sizeof(int32_t) + sizeof(uint64_t) + 4 * sizeof(void*)))
      << "a node of a map for each bucket";
}

TEST_F(QueryLimitsTest, MetricsOfAllExpressionsTogether) {
  query_.metrics.clear();
  for (int i = 0; i < 8; ++i) {
    std::string sum = "clicks";
    for (int j = 0; j < 150; ++j) sum += "+m" + std::to_string(1'000 + i * 150 + j);
    query_.metrics.push_back({.name = "sum " + std::to_string(i), .expression = sum});
  }
  EXPECT_THAT(RunQuery(metadata_, query_),
              FailsWith(absl::StatusCode::kInvalidArgument, "name 1201 metrics, the limit is 1000"));
}

TEST_F(QueryLimitsTest, NamesThatEachSeriesHas) {
  size_t& limit = query_.limits.max_memory_bytes;
  limit = LeastMemory();
  // A hundred series with a name of 512 bytes each.
  query_.metrics = {{.name = std::string(512, 'm'), .expression = "clicks"}};
  limit += 40'000;
  IsExhausted("bytes of memory");
  limit += 20'000;
  EXPECT_OK(RunQuery(metadata_, query_));
  query_.metrics[0].name += 'm';
  EXPECT_THAT(RunQuery(metadata_, query_), FailsWith(absl::StatusCode::kInvalidArgument,
                                                     "metrics[0].name: has 513 bytes, the limit is 512"));
  query_.metrics = {{.name = "clicks"}};
  query_.filters = {{.name = "short"}, {.name = std::string(513, 'f')}};
  EXPECT_THAT(RunQuery(metadata_, query_),
              FailsWith(absl::StatusCode::kInvalidArgument, "filters[1].name: has 513 bytes"));
}

TEST_F(QueryLimitsTest, ASeriesOfManyPointsEndsWithItsCall) {
  const StepGrid grid = StepGrid::Whole(0, 1'000'000);
  QueryUse use;
  use.max_groups = 1'000;
  use.max_memory_bytes = 100'000'000;
  GroupTable table(grid, {}, use);
  SeriesPoints points;
  for (int64_t time = 0; time < 10'000; ++time) {
    points.times.push_back(time);
    points.numbers.push_back(Number::Integer(1));
  }
  std::vector<uint32_t> filters(100);
  std::iota(filters.begin(), filters.end(), 0);
  std::atomic<bool> cancelled{true};
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(table.Add(filters, {}, MetricKind::kValue, points, {0, 1'000'000}),
              FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_LE(table.groups().size(), 10u) << "100,000 additions";
}

TEST_F(QueryLimitsTest, Bytes) {
  query_.limits.max_bytes = 100;
  IsExhausted("reads more than 100 bytes");
}

TEST_F(QueryLimitsTest, ALimitOfBytesEndsTheReadOfARow) {
  store_.page_columns = 10;
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("r", std::vector<std::string>{"clicks"}));
  const std::optional<std::string_view> segments[] = {"country 0"};
  for (int64_t i = 0; i < 500; ++i) {
    Batch batch(info);
    ASSERT_OK(batch.Add(0, i * 1'000, segments, Number::Integer(i)));
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
  }
  query_.limits.max_bytes = 1'000;
  for (const int64_t to : {int64_t{86'400'000}, kMaxTimeMs + 1}) {
    query_.to = to;
    store_.ResetCounts();
    IsExhausted("reads more than 1000 bytes");
    // A scan of the memory store is read as it is opened, and not counted.
    EXPECT_LT(store_.counts().bytes_read, 5'000u);
  }
}

TEST_F(QueryLimitsTest, MemoryOfTheRowsThatAreReadAndDecompressed) {
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, metadata_.Get("r", std::vector<std::string>{"clicks"}));
  // Numbers of 40 bits that come again and again: 300 kB, which are few when they are compressed.
  Batch batch(info);
  const std::optional<std::string_view> segments[] = {"country 0"};
  for (int64_t i = 0; i < 60'000; ++i) {
    const uint64_t mixed = static_cast<uint64_t>(i % 64 + 1) * 0x9E3779B97F4A7C15;
    ASSERT_OK(batch.Add(0, i * 1'000, segments, Number::Integer(static_cast<int64_t>(mixed >> 24))));
  }
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  query_.group_by = {};
  query_.limits.threads = 1;
  query_.limits.max_memory_bytes = 200'000;
  query_.limits.max_bytes = 200'000;
  IsExhausted("more than 200000 bytes of memory");
  // The memory of a row is free again afterwards: two ranges have the row, and the limit is less than twice
  // its size.
  query_.limits.max_memory_bytes = 400'000;
  query_.compare_step = *ParseStep("1ms");
  ASSERT_OK_AND_ASSIGN(const QueryResult result, RunQuery(metadata_, query_));
  EXPECT_TRUE(result.series[0].compared);
}

TEST_F(QueryLimitsTest, Steps) {
  query_.step = *ParseStep("1s");
  query_.limits.max_steps = 1'000;
  IsExhausted("more than 1000 steps");
}

TEST_F(QueryLimitsTest, OnlyTheRowsOfTheRangeAreRead) {
  query_.from = 86'400'000;
  ASSERT_OK_AND_ASSIGN(const QueryResult one_day, RunQuery(metadata_, query_));
  EXPECT_EQ(one_day.cost.rows, 4u) << "one period of four salts";
  query_.from = 0;
  ASSERT_OK_AND_ASSIGN(const QueryResult two_days, RunQuery(metadata_, query_));
  EXPECT_EQ(two_days.cost.rows, 8u);
  // A range without bounds is scanned rather than listed, and reads the same rows.
  store_.ResetCounts();
  query_.to = kMaxTimeMs + 1;
  ASSERT_OK_AND_ASSIGN(const QueryResult all, RunQuery(metadata_, query_));
  EXPECT_EQ(all.cost.rows, 8u);
  EXPECT_EQ(store_.counts().scans, 4u);
  EXPECT_EQ(all.cost.bytes, two_days.cost.bytes);
}

TEST_F(QueryLimitsTest, TheSameBitsWithAnyNumberOfThreads) {
  query_.function = *ParseFunction("function", "avg");
  query_.step = *ParseStep("1d");
  query_.limits.threads = 1;
  ASSERT_OK_AND_ASSIGN(const QueryResult one, RunQuery(metadata_, query_));
  for (const size_t threads : {2, 4, 16}) {
    query_.limits.threads = threads;
    ASSERT_OK_AND_ASSIGN(const QueryResult many, RunQuery(metadata_, query_));
    ASSERT_EQ(many.series.size(), one.series.size());
    for (size_t i = 0; i < one.series.size(); ++i) EXPECT_EQ(many.series[i].points, one.series[i].points);
  }
}

TEST_F(QueryLimitsTest, AnEmptyRangeHasNoPoints) {
  query_.to = query_.from;
  const auto result = RunQuery(metadata_, query_);
  ASSERT_OK(result);
  EXPECT_TRUE(result->series.empty());
}

}  // namespace
}  // namespace kvstore::reports
