#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "reports/compaction.h"
#include "tests/reports/rollup_fixture.h"

/// Which queries roll-ups answer, and that the answer is the same without them.
namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;

constexpr uint64_t kDayMs = 86'400'000;
constexpr uint64_t kHourMs = 3'600'000;

class RollupQueryTest : public testing::RollupFixture {};

TEST_F(RollupQueryTest, AYearByOneKeyReadsFewBytes) {
  testing::Random random(testing::Seed("year"));
  for (int64_t first = 0; first < 365; first += 73) {
    Batch batch(info_);
    for (int64_t time = first * kDay; time < (first + 73) * kDay; time += 3 * kHour) {
      for (int series = 0; series < 50; ++series) {
        const std::string country = "c" + std::to_string(series % 5);
        const std::string app = "a" + std::to_string(series / 5);
        const std::optional<std::string_view> segments[] = {country, app};
        ASSERT_OK(
            batch.Add(kClicks, time, segments, Number::Integer(static_cast<int64_t>(random.Below(1'000)))));
      }
    }
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
  }
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  const RollupResult made = Make();
  EXPECT_EQ(made.rows, 13u * kSalts);
  EXPECT_EQ(made.rows_written, made.rows);
  Query query = Days(0, 365);
  store_.ResetCounts();
  ASSERT_OK_AND_ASSIGN(const QueryResult with, RunQuery(metadata_, query));
  const uint64_t read_with = store_.counts().bytes_read;
  query.use_rollups = false;
  store_.ResetCounts();
  ASSERT_OK_AND_ASSIGN(const QueryResult without, RunQuery(metadata_, query));
  const uint64_t read_without = store_.counts().bytes_read;
  EXPECT_EQ(with.cost.rows, without.cost.rows);
  EXPECT_EQ(with.cost.from_rollups, with.cost.rows);
  EXPECT_EQ(with.cost.chunks, 0u);
  EXPECT_EQ(without.cost.from_rollups, 0u);
  EXPECT_LT(with.cost.bytes * 5, without.cost.bytes);
  EXPECT_LT(read_with * 5, read_without) << "what the store was asked for";
  Ask(Days(0, 365));
  RecordProperty("bytes_with", static_cast<int>(with.cost.bytes));
  RecordProperty("bytes_without", static_cast<int>(without.cost.bytes));
}

TEST_F(RollupQueryTest, StepsOfAZoneAreAnsweredByThoseThatFit) {
  LoadAndRoll();
  Query query = Days(0, 60);
  query.zone = *LoadZone("America/New_York");
  EXPECT_EQ(Ask(query).cost.from_rollups, 0u) << "its days begin within those of UTC";
  query.zone = *LoadZone("Asia/Kolkata");
  EXPECT_EQ(Ask(query).cost.from_rollups, 0u);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}, {.keys = {"country"}, .step_ms = kHourMs}});
  Make({.keep_all = true});
  query.zone = *LoadZone("America/New_York");
  EXPECT_EQ(Ask(query).cost.from_rollups, 4u);
  query.zone = *LoadZone("Asia/Kolkata");
  EXPECT_EQ(Ask(query).cost.from_rollups, 4u)
      << "its days begin at half past six, which is no time of a point";
  query.zone = absl::UTCTimeZone();
  for (const char* step : {"1h", "6h", "1d", "1w", "1mo"}) {
    query.step = *ParseStep(step);
    EXPECT_EQ(Ask(query).cost.from_rollups, 4u) << step;
  }
  query.step = std::nullopt;
  EXPECT_EQ(Ask(query).cost.from_rollups, 4u);
}

TEST_F(RollupQueryTest, ARangeThatCutsAStepReadsThePointsOfThatRow) {
  LoadAndRoll();
  const auto from_rollups = [&](int64_t from, int64_t to) {
    Query query = Days(0, 60);
    query.from = from;
    query.to = to;
    return Ask(query).cost.from_rollups;
  };
  EXPECT_EQ(from_rollups(0, 60 * kDay), 4u);
  EXPECT_EQ(from_rollups(5 * kHour, 60 * kDay), 2u);
  EXPECT_EQ(from_rollups(kDay, 59 * kDay), 4u);
  EXPECT_EQ(from_rollups(0, 59 * kDay + 1), 2u) << "a point of midnight is in it, those behind are not";
  EXPECT_EQ(from_rollups(0, 59 * kDay - kHour + 1), 4u) << "the last hour of the day is in it";
  EXPECT_EQ(from_rollups(0, 59 * kDay - kHour), 2u) << "and now it is not";
  EXPECT_EQ(from_rollups(1, 60 * kDay), 2u);
  EXPECT_EQ(from_rollups(5 * kHour, 59 * kDay + kHour), 0u);
}

TEST_F(RollupQueryTest, FunctionsAreTheSameBitForBit) {
  LoadAndRoll();
  for (const char* metric : {"clicks", "price"}) {
    for (const char* function : {"sum", "count", "avg", "min", "max", "last"}) {
      EXPECT_EQ(Ask(Days(0, 60, metric, function)).cost.from_rollups, 4u) << metric << " " << function;
    }
    EXPECT_EQ(Ask(Days(0, 60, metric, "p50")).cost.from_rollups, 0u) << "these need the points";
    Query query = Days(0, 60, metric, "sum");
    query.top = QueryTop{2, *ParseFunction("by", "avg")};
    EXPECT_EQ(Ask(query).cost.from_rollups, 4u);
    query.top->by = *ParseFunction("by", "p90");
    EXPECT_EQ(Ask(query).cost.from_rollups, 0u);
  }
  EXPECT_EQ(Ask(Days(0, 60, "users", "distinct")).cost.from_rollups, 4u);
  for (const char* function : {"count", "min", "max", "p50", "p99"}) {
    EXPECT_EQ(Ask(Days(0, 60, "delay", function)).cost.from_rollups, 4u) << function;
  }
}

TEST_F(RollupQueryTest, SumsThatCannotBeStoredAreComputed) {
  Load(60);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  int64_t time = kDay;
  // Their exact sum takes more digits than four real numbers have.
  for (const double value : {1e300, 1e200, 1e100, 1.0, 1e-100, 1e-200}) {
    WriteNumber(kPrice, time += kHour, Number::Real(value));
  }
  // The sum of these is 1.25; rounded on the way it would be another one.
  time = 40 * kDay;
  for (const double value : {1e16, 1.0, -1e16, 0.25}) {
    WriteNumber(kPrice, time += kHour, Number::Real(value));
  }
  // This one passes 64 bits in sum, and not on average.
  for (int64_t hour = 0; hour < 4; ++hour) Write(2 * kDay + hour * kHour, INT64_MAX - hour);
  Make();
  EXPECT_EQ(Ask(Days(0, 60, "price", "sum")).cost.from_rollups, 3u);
  EXPECT_EQ(Ask(Days(0, 60, "clicks", "avg")).cost.from_rollups, 3u);
  // Both ways it is the same error.
  EXPECT_THAT(testing::AskBothWays(metadata_, Days(0, 60)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "64 bits"));
}

TEST_F(RollupQueryTest, AKeyThatIsAddedHasItsDefault) {
  LoadAndRoll();
  ASSERT_OK(metadata_.AddKey("r", {"os", "none"}));
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u);
  Query by_os = Days(0, 60);
  by_os.group_by = {"os"};
  EXPECT_EQ(Ask(by_os).cost.from_rollups, 0u);
  ASSERT_OK_AND_ASSIGN(info_, metadata_.Get("r", std::vector<std::string>{"clicks"}));
  Batch batch(info_);
  const std::optional<std::string_view> segments[] = {"c0", "a0", "linux"};
  ASSERT_OK(batch.Add(0, kDay, segments, Number::Integer(5)));
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  Declare({{.keys = {"country"}, .step_ms = kDayMs}, {.keys = {"os"}, .step_ms = kDayMs}});
  Make();
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u);
  const QueryResult result = Ask(by_os);
  EXPECT_EQ(result.cost.from_rollups, 4u);
  ASSERT_EQ(result.series.size(), 2u);
  EXPECT_EQ(result.series[0].segments[0].second, "linux");
}

TEST_F(RollupQueryTest, FiltersLookAtTheKeysThatItHas) {
  LoadAndRoll();
  Query query = Days(0, 60);
  query.group_by = {};
  query.filters = {{.name = "two", .where = {{"country", std::vector<std::string>{"c0", "c2"}}}},
                   {.name = "none", .where = {{"country", std::vector<std::string>{"??"}}}},
                   {.name = "any", .where = {{"app", std::nullopt}}}};
  EXPECT_EQ(Ask(query).cost.from_rollups, 4u);
  query.filters.push_back({.name = "app", .where = {{"app", std::vector<std::string>{"a1"}}}});
  EXPECT_EQ(Ask(query).cost.from_rollups, 0u);
}

TEST_F(RollupQueryTest, DamageIsToldAndNamesTheRow) {
  LoadAndRoll();
  for (const std::string& row : RollupRows()) {
    ASSERT_OK_AND_ASSIGN(const Row page, store_.GetRow("reports", row, {}));
    for (const Item& item : page.items) {
      if (item.column == "made") continue;
      std::string bytes = item.cells[0].value;
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      const CellWrite cell{item.column, bytes, std::nullopt};
      ASSERT_OK(store_.PutRow("reports", row, {&cell, 1}, {}));
    }
  }
  EXPECT_THAT(
      RunQuery(metadata_, Days(0, 60)),
      FailsWith(absl::StatusCode::kDataLoss, "row of report 1, metric 0, period 0, salt 0, roll-up 1"));
  Query query = Days(0, 60);
  query.use_rollups = false;
  EXPECT_OK(RunQuery(metadata_, query));
  Declare({});
  Make();
  EXPECT_OK(RunQuery(metadata_, Days(0, 60))) << "as the message says";
}

TEST_F(RollupQueryTest, APartialAnswerMayComeFromARollupThatLiesElsewhere) {
  LoadAndRoll();
  Query query = Days(0, 60);
  ASSERT_OK_AND_ASSIGN(const QueryResult whole, RunQuery(metadata_, query));
  store_.before_read = [](std::string_view row) {
    return IsRowOfPoints(row) && row[0] == 1 ? absl::UnavailableError("shard 7 on host MySQL001A")
                                             : absl::OkStatus();
  };
  EXPECT_THAT(RunQuery(metadata_, query), FailsWith(absl::StatusCode::kUnavailable, "MySQL001A"));
  query.partial = true;
  ASSERT_OK_AND_ASSIGN(const QueryResult partial, RunQuery(metadata_, query));
  ASSERT_EQ(partial.missing.size(), 2u);
  EXPECT_NE(
      partial.missing[0].find("MySQL001A; answered from a roll-up, which has what was written until 20"),
      std::string::npos)
      << partial.missing[0];
  ASSERT_EQ(partial.series.size(), whole.series.size());
  for (size_t i = 0; i < whole.series.size(); ++i)
    EXPECT_EQ(partial.series[i].points, whole.series[i].points);
  query.use_rollups = false;
  ASSERT_OK_AND_ASSIGN(const QueryResult less, RunQuery(metadata_, query));
  EXPECT_EQ(less.missing.size(), 2u);
  EXPECT_EQ(less.missing[0].find("roll-up"), std::string::npos);
}

TEST_F(RollupQueryTest, ARollupWhoseHostIsDownIsNotMissed) {
  LoadAndRoll();
  store_.before_read = [](std::string_view row) {
    return IsRowOfRollups(row) ? absl::UnavailableError("shard 7 on host MySQL001A") : absl::OkStatus();
  };
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 0u);
}

TEST_F(RollupQueryTest, AllOfTimeIsListedFirst) {
  LoadAndRoll();
  Query query = Days(0, 60);
  query.step = std::nullopt;
  query.to = kMaxTimeMs + 1;
  const QueryResult result = Ask(query);
  EXPECT_EQ(result.cost.from_rollups, 4u);
  EXPECT_EQ(result.cost.rows, 4u);
  store_.ResetCounts();
  EXPECT_OK(RunQuery(metadata_, query));
  EXPECT_EQ(store_.counts().scans, kSalts);
}

TEST_F(RollupQueryTest, SmallPagesAndBatchesAreReadToTheirEnd) {
  LoadAndRoll();
  for (const size_t columns : {1, 2, 5}) {
    store_.page_columns = columns;
    for (const size_t rows : {1, 2, 3}) {
      store_.batch_rows = rows;
      EXPECT_EQ(Ask(Days(0, 60, "price", "avg")).cost.from_rollups, 4u);
    }
  }
}

/// One that has ended is what a comparison is to show, as well as one that has begun.
TEST_F(RollupQueryTest, AComparisonHasTheSeriesOfBothTimes) {
  Write(0, 1, /*add=*/false, "ended");
  Write(0, 2, /*add=*/false, "same");
  Write(kDay, 3, /*add=*/false, "same");
  Write(kDay, 4, /*add=*/false, "new");
  // Returns each country's values and those that they are compared with, without their times.
  using Values = std::vector<int64_t>;
  const auto ask = [&](const Query& query) {
    const auto values_of = [](const std::vector<TimeValue>& points) {
      Values values;
      for (const auto& [time, value] : points) values.push_back(value.integer());
      return values;
    };
    std::vector<std::tuple<std::string, Values, Values>> series;
    for (const ResultSeries& one : Ask(query).series) {
      const bool compared = one.compared.has_value();
      EXPECT_TRUE(compared);
      if (compared)
        series.emplace_back(one.segments[0].second, values_of(one.points), values_of(*one.compared));
    }
    return series;
  };
  using Series = std::vector<std::tuple<std::string, Values, Values>>;
  Query later = Days(1, 2);
  later.compare_step = *ParseStep("1d");
  Query earlier = Days(0, 1);
  earlier.compare_step = later.compare_step;
  earlier.compare_sign = 1;
  EXPECT_EQ(ask(later), (Series{{"ended", {}, {1}}, {"new", {4}, {}}, {"same", {3}, {2}}}));
  EXPECT_EQ(ask(earlier), (Series{{"ended", {1}, {}}, {"new", {}, {4}}, {"same", {2}, {3}}}));
  later.fill = Fill::kZero;
  EXPECT_EQ(ask(later), (Series{{"ended", {0}, {1}}, {"new", {4}, {0}}, {"same", {3}, {2}}}));
  later.fill = Fill::kNone;
  later.metrics = {{.name = "next", .expression = "clicks + 1"}};
  EXPECT_EQ(ask(later), (Series{{"ended", {}, {2}}, {"new", {5}, {}}, {"same", {4}, {3}}}));
  later.top = {.n = 10, .by = later.function};
  EXPECT_EQ(ask(later), (Series{{"new", {5}, {}}, {"same", {4}, {3}}})) << "a rank is that of one time";
}

TEST_F(RollupQueryTest, EachSaltOfEachMetricSaysWhatItCost) {
  LoadAndRoll();
  Write(3 * kDay, 5);
  Query query = Days(0, 60);
  query.metrics = {{.name = "rate", .expression = "price / clicks"}, {.name = "price"}};
  query.compare_step = *ParseStep("30d");
  EXPECT_TRUE(Ask(query).parts.empty());
  query.explain = true;
  const QueryResult result = Ask(query);
  ASSERT_EQ(result.parts.size(), 2u * kSalts);
  QueryCost sum;
  for (size_t i = 0; i < result.parts.size(); ++i) {
    EXPECT_EQ(result.parts[i].metric, i < kSalts ? "clicks" : "price");
    EXPECT_EQ(result.parts[i].salt, i % kSalts);
    EXPECT_GT(result.parts[i].cost.rows, 0u);
    EXPECT_GT(result.parts[i].cost.bytes, 0u);
    sum += result.parts[i].cost;
  }
  EXPECT_EQ(sum.rows, result.cost.rows);
  EXPECT_EQ(sum.chunks, result.cost.chunks);
  EXPECT_EQ(sum.bytes, result.cost.bytes);
  EXPECT_EQ(sum.from_rollups, result.cost.from_rollups);
  EXPECT_LT(sum.from_rollups, sum.rows);
}

}  // namespace
}  // namespace kvstore::reports
