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

/// What a table says of a series: the result of each function for each step of each group.
std::vector<std::optional<Number>> ResultsOf(const GroupTable& table) {
  using Kind = Function::Kind;
  std::vector<std::optional<Number>> results;
  for (const auto& [key, group] : table.groups()) {
    for (const Kind kind : {Kind::kSum, Kind::kCount, Kind::kAvg, Kind::kMin, Kind::kMax, Kind::kLast}) {
      for (size_t step = 0; step < group.steps(); ++step) {
        const Aggregate* const cell = group.Find(step);
        results.push_back(cell == nullptr ? std::nullopt : cell->Result({kind}).value_or(std::nullopt));
      }
      results.push_back(group.whole().Result({kind}).value_or(std::nullopt));
    }
  }
  return results;
}

/// Two tables of one grid, of which one gets series as points and the other as integers.
class GroupTableTest : public ::testing::Test {
 protected:
  GroupTableTest() {
    for (QueryUse* const use : {&points_use_, &integers_use_}) {
      use->max_groups = 1'000;
      use->max_memory_bytes = 100'000'000;
    }
  }

  void AddToBoth(std::span<const uint32_t> filters, const std::vector<uint32_t>& group,
                 const SeriesPoints& points, TimeSpan span) {
    ASSERT_OK(by_points_.Add(filters, group, MetricKind::kValue, points, span));
    std::vector<int64_t> integers;
    for (const Number& number : points.numbers) {
      if (number.is_integer()) integers.push_back(number.integer());
    }
    // A series with real numbers is added as points to either.
    if (integers.size() < points.size()) {
      ASSERT_OK(by_integers_.Add(filters, group, MetricKind::kValue, points, span));
      return;
    }
    std::vector<StepRun> runs;
    grid_.Divide(points.times, span.from, span.to, runs);
    ASSERT_OK(by_integers_.AddIntegers(filters, group, runs, points.times, integers));
  }

  const StepGrid grid_ = *StepGrid::Make({Step::Unit::kMilliseconds, 10}, absl::UTCTimeZone(), 0, 100, 100);
  QueryUse points_use_;
  QueryUse integers_use_;
  GroupTable by_points_{grid_, {.whole = true}, points_use_};
  GroupTable by_integers_{grid_, {.whole = true}, integers_use_};
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
    AddToBoth(filters, group, points, {from, 100 - static_cast<int64_t>(random.Below(20))});
  }
  EXPECT_EQ(ResultsOf(by_points_), ResultsOf(by_integers_));
  EXPECT_EQ(points_use_.memory_bytes, integers_use_.memory_bytes);
}

TEST_F(GroupTableTest, SumsPass64BitsOnTheWay) {
  const uint32_t filters[] = {0};
  const auto series = [](int64_t value) {
    return SeriesPoints{.times = {1, 2},
                        .numbers = {Number::Integer(value), Number::Integer(value)},
                        .sketches = {},
                        .adds = {0, 0}};
  };
  AddToBoth(filters, {}, series(INT64_MAX), {0, 100});
  const Aggregate& sum = *by_integers_.groups().begin()->second.Find(0);
  EXPECT_THAT(sum.Result({Function::Kind::kSum}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "passes 64 bits"));
  AddToBoth(filters, {}, series(INT64_MIN), {0, 100});
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
  for (const uint32_t group : {1, 2, 1}) {
    ASSERT_OK(by_integers_.AddIntegers(filters, {group}, runs, times, integers));
  }
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(by_integers_.AddIntegers(filters, {3}, runs, times, integers),
                FailsWith(absl::StatusCode::kResourceExhausted, "more than 2 groups"));
  }
  ASSERT_OK(by_integers_.AddIntegers(filters, {2}, runs, times, integers));
  EXPECT_EQ(by_integers_.groups().size(), 2u);
}

}  // namespace
}  // namespace kvstore::reports
