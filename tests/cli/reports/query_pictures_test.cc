#include "cli/reports/query_pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "charts/line_chart.h"
#include "cli/command.h"
#include "cli/reports/query_steps.h"
#include "cli/reports/query_text.h"

namespace kvstore::cli {
namespace {

using reports::Number;
using reports::Query;
using reports::QueryResult;
using reports::ResultSeries;

constexpr int64_t kDay = 86'400'000;

/// A query of clicks of the first four days of 1970.
Query FourDays() {
  Query query{.report = "site", .metrics = {{"clicks", ""}}, .from = 0, .to = 4 * kDay};
  query.step = reports::Step{reports::Step::Unit::kDays, 1};
  query.group_by = {"country"};
  return query;
}

/// A series of one country; a value below zero stands for none.
ResultSeries SeriesOf(const std::string& country, const std::vector<int64_t>& values) {
  ResultSeries series{.metric = "clicks", .filter = "", .segments = {{"country", country}}, .points = {}};
  for (size_t day = 0; day < values.size(); ++day) {
    if (values[day] >= 0)
      series.points.emplace_back(static_cast<int64_t>(day) * kDay, Number::Integer(values[day]));
  }
  return series;
}

TEST(QueryText, NumbersForPeople) {
  EXPECT_EQ(NumberText(Number::Integer(9007199254740993)), "9007199254740993");
  EXPECT_EQ(NumberText(Number::Real(0.2)), "0.2");
  EXPECT_EQ(NumberText(Number::Real(2.0 / 9)), "0.222");
  EXPECT_EQ(NumberText(Number::Real(3)), "3");
  EXPECT_EQ(NumberText(Number::Real(100)), "100");
  EXPECT_EQ(NumberText(Number::Real(0)), "0");
  EXPECT_EQ(NumberText(Number::Real(-0.0)), "0");
  EXPECT_EQ(NumberText(Number::Real(-1234567.25)), "-1234567.25");
  EXPECT_EQ(NumberText(Number::Real(1e-9)), "1e-09");
  EXPECT_EQ(NumberText(Number::Real(1e22)), "1e+22");
}

TEST(QueryText, SeriesAreNamedByWhatTellsThemApart) {
  Query query = FourDays();
  EXPECT_EQ(SeriesName(query, SeriesOf("US", {})), "US");
  EXPECT_EQ(SeriesName(query, SeriesOf("", {})), "''");
  EXPECT_EQ(SeriesName(query, SeriesOf("\x1b[31m", {})), "\\x1B[31m");
  ResultSeries series = SeriesOf("US", {});
  series.filter = "north";
  EXPECT_EQ(SeriesName(query, series), "north, US");
  EXPECT_EQ(SeriesName(query, {.metric = "clicks"}), "clicks");
  query.metrics.push_back({"cost", ""});
  EXPECT_EQ(SeriesName(query, series), "clicks, north, US");
}

TEST(QueryText, ComparedValuesStandAtTheirOwnStep) {
  Query query = FourDays();
  query.from = 10 * kDay;
  query.to = 14 * kDay;
  query.compare_step = reports::Step{reports::Step::Unit::kDays, 7};
  ResultSeries series = SeriesOf("US", {});
  series.points = {{11 * kDay, Number::Integer(5)}};
  series.compared =
      std::vector<reports::TimeValue>{{4 * kDay, Number::Integer(1)}, {6 * kDay, Number::Integer(2)}};
  const QuerySteps steps(query);
  EXPECT_EQ(steps.Values(series), (StepValues{std::nullopt, Number::Integer(5), std::nullopt, std::nullopt}));
  EXPECT_EQ(steps.Compared(series),
            (StepValues{std::nullopt, Number::Integer(1), std::nullopt, Number::Integer(2)}));
  EXPECT_EQ(steps.compared_start(1), 4 * kDay);
}

TEST(BlockChart, HasALineForEachSeries) {
  const QueryResult result{
      .series = {SeriesOf("US", {1, 8, -1, 4}), SeriesOf("Åland", {3, 3, 3, 3}), SeriesOf("DE", {})}};
  EXPECT_EQ(BlockChart(FourDays(), result, 80),
            "US     ▁█ ▄  1 to 8\n"
            "Åland  ▄▄▄▄  3\n"
            "DE           no points\n"
            "       1970-01-01 to 1970-01-04, 4 steps\n");
}

TEST(BlockChart, KeepsToTheWidth) {
  Query query = FourDays();
  query.to = 1000 * kDay;
  std::vector<int64_t> values(1000, 1);
  values[500] = 9;
  const std::string chart = BlockChart(query, {.series = {SeriesOf("US", values)}}, 40);
  const std::string line = chart.substr(0, chart.find('\n'));
  size_t characters = 0;
  for (const char c : line) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  EXPECT_EQ(characters, 40u) << line;
  EXPECT_NE(line.find("█"), std::string::npos) << "the peak is there";
}

TEST(BlockChart, OfNothingIsNone) { EXPECT_EQ(BlockChart(FourDays(), {}, 80), "(none)\n"); }

TEST(LinesOf, HasPointsGapsAndMarks) {
  Query query = FourDays();
  query.compare_step = reports::Step{reports::Step::Unit::kDays, 1};
  query.from = kDay;
  query.to = 5 * kDay;
  ResultSeries series = SeriesOf("US", {-1, 5, -1, 7});
  series.compared = std::vector<reports::TimeValue>{{0, Number::Integer(4)}};
  const charts::LineChart chart = LinesOf(query, {.series = {series}});
  EXPECT_EQ(chart.title, "site: clicks");
  EXPECT_EQ(chart.axis, "UTC");
  EXPECT_EQ(chart.begin, kDay);
  EXPECT_EQ(chart.end, 4 * kDay);
  ASSERT_EQ(chart.lines.size(), 2u);
  ASSERT_EQ(chart.lines[0].points.size(), 4u);
  EXPECT_EQ(chart.lines[0].points[0].y, 5);
  EXPECT_TRUE(std::isnan(chart.lines[0].points[1].y));
  EXPECT_EQ(chart.lines[0].points[2].y, 7);
  EXPECT_EQ(chart.lines[1].name, "US -1d");
  EXPECT_EQ(chart.lines[1].points[0].x, kDay) << "it lies over what it is compared with";
  EXPECT_EQ(chart.lines[1].points[0].y, 4);
  ASSERT_FALSE(chart.marks.empty());
  EXPECT_LE(chart.marks.size(), 9u);
  EXPECT_NE(charts::ToSvg(chart).find(">US -1d<"), std::string::npos);
}

TEST(LinesOf, MarksAreRoundTimesOfTheZone) {
  Query query = FourDays();
  query.zone = *reports::LoadZone("Europe/Berlin");
  query.from = 1'356'994'800'000;  // midnight of 2013-01-01 in Berlin
  query.to = query.from + 365 * kDay;
  const charts::LineChart chart = LinesOf(query, {.series = {SeriesOf("US", {})}});
  ASSERT_EQ(chart.marks.size(), 6u) << "every second month";
  EXPECT_EQ(chart.marks[0].text, "2013-01");
  EXPECT_EQ(chart.marks[5].text, "2013-11");
}

TEST(LinesOf, TooManyLinesAreRefused) {
  QueryResult result;
  for (int i = 0; i < 51; ++i) result.series.push_back(SeriesOf(std::to_string(i), {1}));
  try {
    LinesOf(FourDays(), result);
    FAIL() << "51 lines were drawn";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(failure.status.message().find("has 51 lines, and a picture at most 50"), std::string::npos);
  }
}

}  // namespace
}  // namespace kvstore::cli
