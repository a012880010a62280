#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/bench_store.h"
#include "bench/reports/load_points.h"
#include "bench/reports/question.h"
#include "bench/reports/reports_bench.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Runs `kv bench reports` on few points, and against a DuckDB that lies.
namespace kvstore::bench {
namespace {

using kvstore::testing::FailsWith;

void Ignore(const std::string& /*what*/) {}

TEST(ReportsBench, HasAFigureForEachBar) {
  const testing::TempDir dir;
  const ReportsOptions options{.dir = dir.path().string(), .size = 0.0001, .rounds = 1};
  ASSERT_OK_AND_ASSIGN(const ReportsReport report, BenchReports(options, &Ignore));
  std::map<std::string, size_t> bars;  // by unit
  for (const ReportsFigure& figure : report.figures) {
    EXPECT_GT(figure.value, 0) << figure.name;
    if (figure.bar) ++bars[figure.unit];
  }
  // Loads: batches, JSON, through a server, two files; bytes on disk; dashboard, filter and chart; the
  // chart's bytes.
  EXPECT_EQ(bars,
            (std::map<std::string, size_t>{{"points/s", 5}, {"bytes/point", 1}, {"ms", 3}, {"bytes", 1}}));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "the store goes with the benchmark";
  const Json json = ToJson(report);
  EXPECT_EQ(json["figures"].size(), report.figures.size());
  EXPECT_EQ(json["figures"][0]["at_least"], 3e6);
  EXPECT_TRUE(json["figures"][0].contains("met"));
}

TEST(ReportsBench, ABarOfAFullRunSaysNothingOfASmallOne) {
  const ReportsFigure slow{.name = "dashboard", .unit = "ms", .value = 6, .bar = FigureBar{.limit = 5}};
  const ReportsFigure few{.name = "load",
                          .unit = "points/s",
                          .value = 2,
                          .bar = FigureBar{.side = FigureBar::Side::kAtLeast, .limit = 2, .any_size = true}};
  ReportsReport report;
  EXPECT_EQ(Met(report, slow), false);
  EXPECT_EQ(Met(report, few), true);
  report.options.size = 0.5;
  EXPECT_EQ(Met(report, slow), std::nullopt);
  EXPECT_EQ(Met(report, few), true);
  EXPECT_EQ(Met(report, {.name = "growth", .unit = "times", .value = 1}), std::nullopt);
}

TEST(ReportsBench, WhatThereIsNotIsNamed) {
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(BenchReports({.parts = {"lode"}}, &Ignore), FailsWith(refused, "'lode' is none of load, disk"));
  EXPECT_THAT(BenchReports({.size = 2}, &Ignore), FailsWith(refused, "size"));
  const ReportsOptions options{.parts = {"chart"}, .duckdb = DuckDbOptions{.python = "/no/python"}};
  EXPECT_THAT(BenchReports(options, &Ignore), FailsWith(absl::StatusCode::kUnavailable, "'/no/python'"));
}

TEST(PointMaker, BothOrdersMakeTheSamePoints) {
  const PointSet set{.report = "r", .metrics = 3, .countries = 2, .apps = 3, .genders = 2, .days = 5};
  std::vector<std::vector<int64_t>> made[2];
  for (const PointOrder order : {PointOrder::kBySeries, PointOrder::kByDay}) {
    PointMaker maker(set, order);
    auto& points = made[static_cast<size_t>(order)];
    while (true) {
      const auto& some = maker.Next(7);
      if (some.empty()) break;
      for (const MadePoint& point : some) {
        points.push_back({point.metric, point.series, point.day, point.value});
        EXPECT_EQ(point.value, ValueOf(set, point.metric, point.series, point.day));
      }
    }
    EXPECT_EQ(points.size(), set.points());
  }
  EXPECT_NE(made[0], made[1]);
  std::sort(made[1].begin(), made[1].end());
  EXPECT_EQ(made[0], made[1]);
}

TEST(LoadFiles, HaveALineForEachPoint) {
  const testing::TempDir dir;
  const PointSet set{.report = "r", .countries = 2, .apps = 1, .genders = 1, .days = 3};
  ASSERT_OK(WriteLoadFiles(set, dir / "new" / "folder"));
  std::ifstream csv(dir / "new" / "folder" / "points.csv");
  std::ifstream jsonl(dir / "new" / "folder" / "points.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(csv, line));
  EXPECT_EQ(line, "time,country,app,gender,m0000");
  for (uint32_t series = 0; series < 2; ++series) {
    for (uint32_t day = 0; day < 3; ++day) {
      const int64_t value = ValueOf(set, 0, series, day);
      const std::string time = "2013-01-0" + std::to_string(day + 1);
      const std::string country = "c0" + std::to_string(series);
      ASSERT_TRUE(std::getline(csv, line));
      EXPECT_EQ(line, time + "," + country + ",a000,g0," + std::to_string(value));
      ASSERT_TRUE(std::getline(jsonl, line));
      EXPECT_EQ(Json::parse(line),
                (Json{{"metric", "m0000"},
                      {"time", time},
                      {"segments", {{"country", country}, {"app", "a000"}, {"gender", "g0"}}},
                      {"value", value}}));
    }
  }
  EXPECT_FALSE(std::getline(csv, line));
  EXPECT_FALSE(std::getline(jsonl, line));
}

/// Reports with a small set, and a program that stands in for Python with DuckDB's script.
class AnswersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, BenchStore::Create(dir_.path().string()));
    reports_ = reports::LocalReports(store_->store(), "reports");
    ASSERT_OK(LoadPoints(*reports_, set_, PointOrder::kByDay));
  }
  /// A DuckDB that answers each question with these rows.
  std::unique_ptr<DuckDb> DuckDbThatSays(const std::string& answer) {
    const auto script = dir_ / "script";
    std::ofstream(script)
        << R"(while read -r line; do case "$line" in *about*) echo '{"ok":true,"version":"0"}' ;;)"
        << " *) echo '" << answer << "' ;; esac; done\n";
    auto duckdb = DuckDb::Start({.python = "/bin/sh", .script = script}, dir_.path(), 1);
    EXPECT_OK(duckdb);
    return *std::move(duckdb);
  }
  absl::StatusOr<Turns> Ask(DuckDb* duckdb) {
    return AskByTurns(*reports_, duckdb, set_, {&question_, 1}, /*rounds=*/3, /*threads=*/1);
  }

  const testing::TempDir dir_;
  const PointSet set_{.report = "r", .countries = 2, .apps = 1, .genders = 1, .days = 2};
  const Question question_{.end_day = 1, .group_by = {"country"}};
  const int64_t first_ = ValueOf(set_, 0, 0, 0);
  const int64_t second_ = ValueOf(set_, 0, 1, 0);
  std::unique_ptr<BenchStore> store_;
  std::unique_ptr<reports::Reports> reports_;
};

TEST_F(AnswersTest, AreEqual) {
  const Json rows = {{"c00", kFirstDayMs, first_}, {"c01", kFirstDayMs, second_}};
  const auto duckdb = DuckDbThatSays(Json{{"ok", true}, {"rows", rows}, {"ms", 2}}.dump());
  ASSERT_OK_AND_ASSIGN(const Turns turns, Ask(duckdb.get()));
  EXPECT_EQ(turns.ours.count(), 3u);
  EXPECT_EQ(turns.duckdb.count(), 3u);
  EXPECT_NEAR(static_cast<double>(turns.duckdb.Quantile(0.5)), 2e6, 4e4);
}

TEST_F(AnswersTest, AnAnswerThatDiffersIsAnError) {
  const auto code = absl::StatusCode::kDataLoss;
  const Json wrong = {{"c00", kFirstDayMs, first_}, {"c01", kFirstDayMs, second_ + 1}};
  auto duckdb = DuckDbThatSays(Json{{"ok", true}, {"rows", wrong}, {"ms", 2}}.dump());
  EXPECT_THAT(Ask(duckdb.get()),
              FailsWith(code, "DuckDB answers " + std::to_string(second_ + 1) + " for c01/"));
  const Json more = {{"c00", kFirstDayMs, first_}, {"c01", kFirstDayMs, second_}, {"c02", kFirstDayMs, 0}};
  duckdb = DuckDbThatSays(Json{{"ok", true}, {"rows", more}, {"ms", 2}}.dump());
  EXPECT_THAT(Ask(duckdb.get()), FailsWith(code, "the points' sum is nothing"));
  duckdb = DuckDbThatSays(Json{{"ok", false}, {"error", "no table"}}.dump());
  EXPECT_THAT(Ask(duckdb.get()), FailsWith(absl::StatusCode::kInternal, "duckdb: no table"));
  // Ours is found out as well: one point more than the set has.
  ASSERT_OK_AND_ASSIGN(const auto info, reports_->Info("r", {"m0000"}));
  reports::Batch batch(info);
  const std::optional<std::string_view> segments[] = {"c01", "a000", "g0"};
  ASSERT_OK(batch.Add(0, kFirstDayMs, segments, reports::Number::Integer(1)));
  ASSERT_OK(reports_->Write(batch, {.add = true}));
  EXPECT_THAT(Ask(nullptr),
              FailsWith(code, "our store answers " + std::to_string(second_ + 1) + " for c01/"));
}

TEST_F(AnswersTest, ADuckDbThatEndsIsUnavailable) {
  const auto script = dir_ / "script";
  std::ofstream(script) << "exit 1\n";
  EXPECT_THAT(DuckDb::Start({.python = "/bin/sh", .script = script}, dir_.path(), 1),
              FailsWith(absl::StatusCode::kUnavailable, "ended"));
}

}  // namespace
}  // namespace kvstore::bench
