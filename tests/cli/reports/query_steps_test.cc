#include "cli/reports/query_steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace kvstore::cli {
namespace {

using reports::Number;
using reports::Query;

/// A query from one time to another, which is compared with "1mo" (or so) before.
Query Compared(const std::string& from, const std::string& to, const std::string& step,
               const std::string& compare, const std::string& zone = "UTC") {
  Query query{.report = "site", .metrics = {{"clicks", ""}}};
  query.zone = *reports::LoadZone(zone);
  query.from = *reports::ParseTimeText(from, query.zone);
  query.to = *reports::ParseTimeText(to, query.zone);
  if (!step.empty()) query.step = *reports::ParseStep(step);
  query.compare_step = *reports::ParseStep(compare);
  return query;
}

std::string Local(const Query& query, int64_t time) {
  return absl::FormatTime("%m-%d %H:%M", absl::FromUnixMillis(time), query.zone);
}

/// Returns each step with the one that it is compared with: "03-01 00:00 with 02-01 00:00".
std::vector<std::string> Pairs(const Query& query) {
  const QuerySteps steps(query);
  std::vector<std::string> pairs;
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto other = steps.compared_start(step);
    pairs.push_back(Local(query, steps.start(step)) + " with " + (other ? Local(query, *other) : "nothing"));
  }
  return pairs;
}

TEST(QuerySteps, DaysAreComparedByTheirDayOfTheMonth) {
  const auto march = Pairs(Compared("2013-03-01", "2013-04-01", "1d", "1mo"));
  ASSERT_EQ(march.size(), 31u);
  EXPECT_EQ(march[0], "03-01 00:00 with 02-01 00:00");
  EXPECT_EQ(march[27], "03-28 00:00 with 02-28 00:00");
  for (size_t day = 28; day < 31; ++day) EXPECT_TRUE(march[day].ends_with("with nothing")) << march[day];
  const auto february = Pairs(Compared("2013-02-01", "2013-03-01", "1d", "1mo"));
  ASSERT_EQ(february.size(), 28u);
  EXPECT_EQ(february[27], "02-28 00:00 with 01-28 00:00");
}

TEST(QuerySteps, ADayThatAMonthDoesNotHaveIsNotTheFirstOfTheNext) {
  // The days after February are in the time that is compared with, too.
  const auto days = Pairs(Compared("2013-03-28", "2013-04-03", "1d", "1mo"));
  EXPECT_EQ(days, (std::vector<std::string>{"03-28 00:00 with 02-28 00:00", "03-29 00:00 with nothing",
                                            "03-30 00:00 with nothing", "03-31 00:00 with nothing",
                                            "04-01 00:00 with 03-01 00:00", "04-02 00:00 with 03-02 00:00"}));
}

TEST(QuerySteps, HoursAreComparedByTheTimeOfDayWhenClocksAreChanged) {
  // Clocks went forward in New York on 10 March 2013, at 02:00.
  const auto changed = Pairs(Compared("2013-03-10", "2013-03-11", "1h", "1d", "America/New_York"));
  ASSERT_EQ(changed.size(), 23u);
  EXPECT_EQ(changed[1], "03-10 01:00 with 03-09 01:00");
  EXPECT_EQ(changed[2], "03-10 03:00 with 03-09 03:00");
  EXPECT_EQ(changed[22], "03-10 23:00 with 03-09 23:00");
  const auto after = Pairs(Compared("2013-03-11", "2013-03-12", "1h", "1d", "America/New_York"));
  ASSERT_EQ(after.size(), 24u);
  EXPECT_EQ(after[1], "03-11 01:00 with 03-10 01:00");
  EXPECT_EQ(after[2], "03-11 02:00 with nothing");
  EXPECT_EQ(after[3], "03-11 03:00 with 03-10 03:00");
  // They went back on 3 November 2013, so that 01:00 came twice.
  const auto longer = Pairs(Compared("2013-11-03", "2013-11-04", "1h", "1d", "America/New_York"));
  ASSERT_EQ(longer.size(), 25u);
  EXPECT_EQ(longer[1], "11-03 01:00 with 11-02 01:00");
  EXPECT_EQ(longer[2], "11-03 01:00 with 11-02 01:00");
  EXPECT_EQ(longer[24], "11-03 23:00 with 11-02 23:00");
}

TEST(QuerySteps, HoursOfAFixedDistanceAreThatFarApart) {
  const auto pairs = Pairs(Compared("2013-03-11", "2013-03-12", "1h", "24h", "America/New_York"));
  EXPECT_EQ(pairs[0], "03-11 00:00 with 03-09 23:00");
  EXPECT_EQ(pairs[23], "03-11 23:00 with 03-10 23:00");
}

TEST(QuerySteps, WeeksAreComparedWithTheNearest) {
  const auto weeks = Pairs(Compared("2013-03-01", "2013-04-01", "1w", "1y"));
  EXPECT_EQ(weeks, (std::vector<std::string>{"02-25 00:00 with 02-27 00:00", "03-04 00:00 with 03-05 00:00",
                                             "03-11 00:00 with 03-12 00:00", "03-18 00:00 with 03-19 00:00",
                                             "03-25 00:00 with 03-26 00:00"}));
}

TEST(QuerySteps, MonthsAreComparedWithMonths) {
  const auto months = Pairs(Compared("2013-01-01", "2013-04-01", "1mo", "1y"));
  EXPECT_EQ(months, (std::vector<std::string>{"01-01 00:00 with 01-01 00:00", "02-01 00:00 with 02-01 00:00",
                                              "03-01 00:00 with 03-01 00:00"}));
}

TEST(QuerySteps, WithoutStepsTheWholeIsComparedWithTheWhole) {
  const Query query = Compared("2013-03-05", "2013-03-31", "", "1mo");
  const QuerySteps steps(query);
  ASSERT_EQ(steps.size(), 1u);
  reports::ResultSeries series{.metric = "clicks", .points = {{query.from, Number::Integer(1)}}};
  series.compared = std::vector<reports::TimeValue>{
      {*reports::ParseTimeText("2013-02-05", query.zone), Number::Integer(2)}};
  EXPECT_EQ(steps.Values(series), (StepValues{Number::Integer(1)}));
  EXPECT_EQ(steps.Compared(series), (StepValues{Number::Integer(2)}));
}

TEST(QuerySteps, ValuesGoToTheStepsThatTheyAreComparedWith) {
  const Query query = Compared("2013-03-28", "2013-04-03", "1d", "1mo");
  const auto day = [&](const char* text) { return *reports::ParseTimeText(text, query.zone); };
  reports::ResultSeries series{.metric = "clicks"};
  series.compared = std::vector<reports::TimeValue>{{day("2013-02-28"), Number::Integer(28)},
                                                    {day("2013-03-01"), Number::Integer(1)}};
  EXPECT_EQ(QuerySteps(query).Compared(series), (StepValues{Number::Integer(28), std::nullopt, std::nullopt,
                                                            std::nullopt, Number::Integer(1), std::nullopt}));
}

}  // namespace
}  // namespace kvstore::cli
