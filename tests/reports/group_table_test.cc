#include "reports/group_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Random;

using Kind = Function::Kind;

constexpr Kind kAll[] = {Kind::kSum, Kind::kCount, Kind::kAvg, Kind::kMin, Kind::kMax, Kind::kLast};

/// Returns a table's answer for a series: the result of each function for each step of each group.
std::vector<std::optional<Number>> ResultsOf(const GroupTable& table, std::span<const Kind> kinds = kAll) {
  std::vector<std::optional<Number>> results;
  for (const auto& [key, group] : table.groups()) {
    for (const Kind kind : kinds) {
      for (size_t step = 0; step < group.steps(); ++step) {
        const Aggregate* const cell = group.Find(step);
        results.push_back(cell == nullptr ? std::nullopt : cell->Result({kind}).value_or(std::nullopt));
      }
      results.push_back(group.whole().Result({kind}).value_or(std::nullopt));
    }
  }
  return results;
}

/// Three tables of one grid, of which one gets series as points, one as integers and one as sums.
class GroupTableTest : public ::testing::Test {
 protected:
  GroupTableTest() {
    for (QueryUse* const use : {&points_use_, &integers_use_, &sums_use_}) {
      use->max_groups = 1'000;
      use->max_memory_bytes = 100'000'000;
    }
  }

  void AddToAll(std::span<const uint32_t> filters, const std::vector<uint32_t>& group,
                const SeriesPoints& points, TimeSpan span) {
    ASSERT_OK(by_points_.Add(filters, group, MetricKind::kValue, points, span));
    std::vector<int64_t> integers;
    for (const Number& number : points.numbers) {
      if (number.is_integer()) integers.push_back(number.integer());
    }
    // A series with real numbers is added as points to either.
    if (integers.size() < points.size()) {
      ASSERT_OK(by_integers_.Add(filters, group, MetricKind::kValue, points, span));
      ASSERT_OK(by_sums_.Add(filters, group, MetricKind::kValue, points, span));
      return;
    }
    std::vector<StepRun> runs;
    grid_.Divide(points.times, span.from, span.to, runs);
    ASSERT_OK(by_integers_.AddIntegers(filters, group, runs, points.times, integers));
    std::vector<Int128> sums;
    for (const StepRun& run : runs) {
      Int128& sum = sums.emplace_back(0);
      for (size_t i = run.begin; i < run.end; ++i) sum += integers[i];
    }
    ASSERT_OK(by_sums_.AddSums(filters, group, runs, sums));
  }

  const StepGrid grid_ = *StepGrid::Make({Step::Unit::kMilliseconds, 10}, absl::UTCTimeZone(), 0, 100, 100);
  QueryUse points_use_;
  QueryUse integers_use_;
  QueryUse sums_use_;
  GroupTable by_points_{grid_, {.whole = true}, points_use_};
  GroupTable by_integers_{grid_, {.whole = true}, integers_use_};
  GroupTable by_sums_{grid_, {.whole = true, .sums_only = true}, sums_use_};
};

TEST_F(GroupTableTest, IntegersCountAsPointsOfThem) {
  Random random(testing::Seed("integers of groups"));
  for (int series = 0; series < 500; ++series) {
    SeriesPoints points;
    const uint64_t shift = random.Below(64);
    const bool reals = random.OneIn(5);
    for (int64_t time = 0; time < 120; time += 1 + static_cast<int64_t>(random.Below(8))) {
      points.times.push_back(time);
      points.adds.push_back(0);
      const auto value = static_cast<int64_t>(random.Next()) >> shift;
      points.numbers.push_back(reals && random.OneIn(2) ? Number::Real(static_cast<double>(value))
                                                        : Number::Integer(value));
    }
    const auto from = static_cast<int64_t>(random.Below(90));
    const std::vector<uint32_t> filters = {0, 1 + static_cast<uint32_t>(random.Below(2))};
    const std::vector<uint32_t> group = {static_cast<uint32_t>(random.Below(3))};
    AddToAll(filters, group, points, {from, 100 - static_cast<int64_t>(random.Below(20))});
  }
  EXPECT_EQ(ResultsOf(by_points_), ResultsOf(by_integers_));
  EXPECT_EQ(points_use_.memory_bytes, integers_use_.memory_bytes);
  constexpr Kind kOfSums[] = {Kind::kSum, Kind::kCount, Kind::kAvg};
  EXPECT_EQ(ResultsOf(by_points_, kOfSums), ResultsOf(by_sums_, kOfSums));
  EXPECT_EQ(points_use_.memory_bytes, sums_use_.memory_bytes);
}

TEST_F(GroupTableTest, SumsPass64BitsOnTheWay) {
  const uint32_t filters[] = {0};
  const auto series = [](int64_t value) {
    return SeriesPoints{.times = {1, 2},
                        .numbers = {Number::Integer(value), Number::Integer(value)},
                        .sketches = {},
                        .adds = {0, 0}};
  };
  AddToAll(filters, {}, series(INT64_MAX), {0, 100});
  const Aggregate& sum = *by_integers_.groups().begin()->second.Find(0);
  EXPECT_THAT(sum.Result({Function::Kind::kSum}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "passes 64 bits"));
  AddToAll(filters, {}, series(INT64_MIN), {0, 100});
  ASSERT_OK_AND_ASSIGN(const auto result, sum.Result({Function::Kind::kSum}));
  EXPECT_EQ(result, Number::Integer(-2));
  EXPECT_EQ(ResultsOf(by_points_), ResultsOf(by_integers_));
}

TEST_F(GroupTableTest, MoreGroupsThanTheLimitAreRefused) {
  integers_use_.max_groups = 2;
  const std::vector<StepRun> runs = {{.step = 0, .begin = 0, .end = 1}};
  const int64_t times[] = {5};
  const int64_t integers[] = {7};
  const uint32_t filters[] = {0};
  const auto add = [&](uint32_t group) {
    return by_integers_.AddIntegers(filters, {&group, 1}, runs, times, integers);
  };
  for (const uint32_t group : {1, 2, 1}) ASSERT_OK(add(group));
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(add(3), FailsWith(absl::StatusCode::kResourceExhausted, "more than 2 groups"));
  }
  ASSERT_OK(add(2));
  EXPECT_EQ(by_integers_.groups().size(), 2u);
}

}  // namespace
}  // namespace kvstore::reports
