#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/metadata.h"
#include "reports/rollup.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/memory_store.h"
#include "tests/reports/report_choices.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// A report "r" of hours, two salts and periods of 30 days, with the keys country and app, and a metric of
/// each kind: clicks, users (distinct), delay (distribution), and price, a second one of values.
class RollupFixture : public ::testing::Test {
 protected:
  static constexpr int64_t kHour = 3'600'000;
  static constexpr int64_t kDay = 24 * kHour;
  static constexpr uint32_t kSalts = 2;
  static constexpr size_t kClicks = 0;
  static constexpr size_t kUsers = 1;
  static constexpr size_t kDelay = 2;
  static constexpr size_t kPrice = 3;

  void SetUp() override {
    store_.page_columns = 1'000;
    store_.batch_rows = 1'000;
    Create(kSalts);
  }

  void Create(uint32_t salts) {
    ASSERT_OK_AND_ASSIGN(
        info_,
        metadata_.Create({.name = "r",
                          .settings = {.resolution_ms = kHour, .period_s = 30 * 86'400, .salts = salts},
                          .keys = {{"country", std::nullopt}, {"app", "?"}},
                          .metrics = {{.name = "clicks"},
                                      {.name = "users", .kind = reports::MetricKind::kDistinct},
                                      {.name = "delay", .kind = reports::MetricKind::kDistribution},
                                      {.name = "price"}}}));
  }

  /// Points of all metrics every six hours for so many days, of 3 countries and 8 apps.
  void Load(int64_t days) {
    Random random(Seed("roll-ups"));
    reports::Batch batch(info_);
    for (int64_t time = 0; time < days * kDay; time += 6 * kHour) {
      for (int series = 0; series < 24; ++series) {
        const std::string country = "c" + std::to_string(series % 3);
        const std::string app = "a" + std::to_string(series / 3);
        const std::optional<std::string_view> segments[] = {country, app};
        ASSERT_OK(batch.Add(kClicks, time, segments,
                            reports::Number::Integer(static_cast<int64_t>(random.Below(1'000)))));
        // Tenths, whose sums depend on their order unless they are exact.
        const double tenths = static_cast<double>(random.Below(10'000)) / 10;
        ASSERT_OK(batch.Add(kPrice, time, segments,
                            random.OneIn(4) ? reports::Number::Integer(7) : reports::Number::Real(tenths)));
        const std::vector<std::string> members = {std::to_string(random.Below(50))};
        ASSERT_OK(batch.AddDistinct(kUsers, time, segments, members));
        const std::vector<double> values = {static_cast<double>(random.Below(100)), -3.5};
        ASSERT_OK(batch.AddDistribution(kDelay, time, segments, values));
      }
    }
    ASSERT_OK(reports::WriteBatch(metadata_, batch, {}));
  }
  /// 60 days of points, in two periods and so four rows of each metric, with a roll-up by country and day.
  void LoadAndRoll() {
    Load(60);
    Declare({{.keys = {"country"}, .step_ms = static_cast<uint64_t>(kDay)}});
    EXPECT_EQ(Make({.keep_all = true}).rows_written, 4u * 4u);
  }
  /// Writes one point of clicks, or adds to it.
  void Write(int64_t time, int64_t value, bool add = false, const std::string& country = "c0",
             const std::string& app = "a0") {
    WriteNumber(kClicks, time, reports::Number::Integer(value), add, country, app);
  }
  void WriteNumber(size_t metric, int64_t time, const reports::Number& value, bool add = false,
                   const std::string& country = "c0", const std::string& app = "a0") {
    reports::Batch batch(info_);
    const std::optional<std::string_view> segments[] = {country, app};
    ASSERT_OK(batch.Add(metric, time, segments, value));
    ASSERT_OK(reports::WriteBatch(metadata_, batch, {.add = add}));
  }

  void Declare(const std::vector<reports::Rollup>& rollups) { ASSERT_OK(metadata_.SetRollups("r", rollups)); }
  reports::RollupResult Make(const reports::RollupOptions& options = {}) {
    auto result = reports::MakeRollups(metadata_, "r", options);
    EXPECT_OK(result);
    return result.value_or(reports::RollupResult{});
  }
  /// Returns a query for the days from `from` to `to`, with a value for each country and day.
  static reports::Query Days(int64_t from, int64_t to, const std::string& metric = "clicks",
                             const std::string& function = "sum") {
    return {.report = "r",
            .metrics = {{.name = metric}},
            .from = from * kDay,
            .to = to * kDay,
            .step = *reports::ParseStep("1d"),
            .group_by = {"country"},
            .function = *reports::ParseFunction("function", function)};
  }
  /// The answer, which must be the same without roll-ups.
  reports::QueryResult Ask(const reports::Query& query) {
    auto result = AskBothWays(metadata_, query);
    EXPECT_OK(result);
    return result.ok() ? *std::move(result) : reports::QueryResult{};
  }
  /// The keys of all rows of roll-ups.
  std::vector<std::string> RollupRows() {
    std::vector<std::string> rows;
    auto cursor = store_.ScanRows("reports", {.start = "\x40", .end = "\x80"}, {});
    EXPECT_OK(cursor);
    ScannedRow row;
    while (*(*cursor)->Next(row)) {
      if (rows.empty() || rows.back() != row.key) rows.push_back(row.key);
    }
    return rows;
  }
  static bool IsRowOfPoints(std::string_view row) {
    return row.size() == reports::kRowKeyBytes && static_cast<uint8_t>(row[0]) < reports::kMaxSalts;
  }
  static bool IsRowOfRollups(std::string_view row) {
    return row.size() == reports::kRowKeyBytes && !IsRowOfPoints(row);
  }

  MemoryStore store_;
  reports::Metadata metadata_{store_, "reports"};
  reports::ReportInfo info_;
};

}  // namespace kvstore::testing
