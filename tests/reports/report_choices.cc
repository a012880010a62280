#include "tests/reports/report_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "reports/run_query.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

using namespace reports;  // NOLINT(google-build-using-namespace): the choices speak of nothing else

namespace {

void ExpectSameBits(const std::vector<TimeValue>& got, const std::vector<TimeValue>& expected,
                    const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first) << what;
    const Number& a = got[i].second;
    const Number& b = expected[i].second;
    EXPECT_TRUE(a == b) << what << " at " << got[i].first << ": " << a.AsReal() << " instead of "
                        << b.AsReal();
  }
}

}  // namespace

void ExpectSameSeries(const std::vector<ResultSeries>& got, const std::vector<ResultSeries>& expected,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].metric, expected[i].metric) << what;
    EXPECT_EQ(got[i].filter, expected[i].filter) << what;
    EXPECT_EQ(got[i].segments, expected[i].segments) << what;
    ExpectSameBits(got[i].points, expected[i].points, what);
    ASSERT_EQ(got[i].compared.has_value(), expected[i].compared.has_value()) << what;
    if (got[i].compared) ExpectSameBits(*got[i].compared, *expected[i].compared, what + ", compared");
  }
}

ReportInfo ReportChoices::Report() {
  return {.name = "flights",
          .settings = {.resolution_ms = kHour,
                       .period_s = 86'400 * (1 + random_.Below(9)),
                       .salts = static_cast<uint32_t>(1 + random_.Below(5))},
          .keys = {{"carrier", std::nullopt}, {"origin", "?"}},
          .metrics = {{.name = "departures"},
                      {.name = "delay", .kind = MetricKind::kDistribution},
                      {.name = "planes", .kind = MetricKind::kDistinct},
                      {.name = "fuel"}}};
}

std::string ReportChoices::Value(const ReportInfo& info, size_t key) {
  // The default's value is also written by name.
  const uint64_t number = random_.Below(key == 0 ? 5 : 4);
  return number == 0 && key > 0 ? *info.keys[key].default_value : "v" + std::to_string(number);
}

ReportModel::Point ReportChoices::Point(const ReportInfo& info) {
  ReportModel::Point point{.metric = random_.Below(4)};
  for (size_t key = 0; key < info.keys.size(); ++key) point.segments.push_back(Value(info, key));
  const int64_t range = random_.OneIn(3) ? kHours : 48;
  point.time = (kHours - 1 - static_cast<int64_t>(random_.Below(static_cast<uint64_t>(range)))) * kHour;
  if (point.metric == 0) point.number = Number::Integer(static_cast<int64_t>(random_.Below(1'000)) - 300);
  if (point.metric == 3) {
    const auto eighths = static_cast<int64_t>(random_.Below(4'000)) - 1'000;
    point.number =
        random_.OneIn(3) ? Number::Integer(eighths) : Number::Real(static_cast<double>(eighths) / 8);
  }
  for (uint64_t i = 1 + random_.Below(4); i > 0; --i) {
    if (point.metric == 1) point.values.push_back(static_cast<double>(random_.Below(200)) - 50);
    if (point.metric == 2) point.members.push_back(std::to_string(random_.Below(60)));
  }
  return point;
}

std::vector<ReportModel::Point> ReportChoices::Points(const ReportInfo& info, uint64_t most) {
  std::vector<ReportModel::Point> points;
  for (uint64_t i = 1 + random_.Below(most); i > 0; --i) points.push_back(Point(info));
  return points;
}

Batch ReportChoices::BatchOf(const ReportInfo& info, const std::vector<ReportModel::Point>& points) {
  Batch batch(info);
  for (const ReportModel::Point& point : points) {
    std::vector<std::optional<std::string_view>> segments;
    for (size_t key = 0; key < point.segments.size(); ++key) {
      const auto& by_default = info.keys[key].default_value;
      const bool left_out = by_default && *by_default == point.segments[key] && random_.OneIn(2);
      segments.push_back(left_out ? std::nullopt : std::optional<std::string_view>(point.segments[key]));
    }
    switch (info.metrics[point.metric].kind) {
      case MetricKind::kValue:
        EXPECT_OK(batch.Add(point.metric, point.time, segments, point.number));
        break;
      case MetricKind::kDistinct:
        EXPECT_OK(batch.AddDistinct(point.metric, point.time, segments, point.members));
        break;
      case MetricKind::kDistribution:
        EXPECT_OK(batch.AddDistribution(point.metric, point.time, segments, point.values));
        break;
    }
  }
  return batch;
}

std::vector<Rollup> ReportChoices::Rollups(const ReportInfo& info) {
  // All of them divide a day, and so each period; or they are the period itself.
  const uint64_t steps[] = {1, 2, 6, 24, 24, info.settings.period_s / 3'600};
  std::vector<Rollup> rollups;
  for (uint64_t i = random_.Below(4); i > 0; --i) {
    Rollup rollup{.step_ms = steps[random_.Below(6)] * static_cast<uint64_t>(kHour)};
    for (const SegmentKey& key : info.keys) {
      if (random_.OneIn(2)) rollup.keys.push_back(key.name);
    }
    if (std::find(rollups.begin(), rollups.end(), rollup) == rollups.end()) rollups.push_back(rollup);
  }
  return rollups;
}

void ReportChoices::ChooseTimes(const ReportInfo& info, Query& query) {
  static const char* const kSteps[] = {"1h", "6h", "1d", "1d", "1w", "1mo"};
  static const char* const kZones[] = {"UTC", "UTC", "America/New_York", "Asia/Kolkata"};
  query.from = static_cast<int64_t>(random_.Below(kHours)) * kHour;
  query.to = query.from + 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(kHours * kHour)));
  if (random_.OneIn(2)) {
    // Dashboards ask for whole days, or for whole periods.
    const int64_t whole =
        random_.OneIn(2) ? 24 * kHour : static_cast<int64_t>(info.settings.period_s) * int64_t{1000};
    query.from -= query.from % whole;
    query.to += whole - 1 - (query.to - 1) % whole;
  }
  if (!random_.OneIn(3)) query.step = *ParseStep(kSteps[random_.Below(6)]);
  query.zone = *LoadZone(kZones[random_.Below(4)]);
}

void ReportChoices::ChooseComparison(Query& query) {
  query.compare_step = *ParseStep(random_.OneIn(2) ? "7d" : "1mo");
  query.compare_sign = random_.OneIn(3) ? 1 : -1;
}

Query ReportChoices::PlainQuery(const ReportInfo& info) {
  static const char* const kFunctions[][6] = {
      {"sum", "count", "avg", "min", "max", "last"},
      {"p50", "p99", "count", "min", "max", "p0"},
      {"distinct", "distinct", "distinct", "distinct", "distinct", "distinct"},
      {"sum", "p50", "avg", "p99.9", "p0", "last"}};
  const size_t metric = random_.Below(4);
  Query query{.report = "flights", .metrics = {{.name = info.metrics[metric].name}}};
  ChooseTimes(info, query);
  query.function = *ParseFunction("function", kFunctions[metric][random_.Below(6)]);
  // Many look at few keys, so that roll-ups have them.
  const uint64_t looks = random_.OneIn(2) ? 2 : 6;
  for (uint64_t i = random_.Below(4); i > 0; --i) {
    QueryFilter& filter = query.filters.emplace_back();
    filter.name = "filter " + std::to_string(i);
    for (size_t key = 0; key < info.keys.size(); ++key) {
      if (!random_.OneIn(looks)) continue;
      auto& values = filter.where[info.keys[key].name];
      if (random_.OneIn(4)) continue;
      values.emplace();
      for (uint64_t v = random_.Below(3); v > 0; --v)
        values->push_back(random_.OneIn(8) ? "no such" : Value(info, key));
    }
  }
  for (const SegmentKey& key : info.keys) {
    if (random_.OneIn(looks + 1)) query.group_by.push_back(key.name);
  }
  if (random_.OneIn(4)) query.fill = random_.OneIn(2) ? Fill::kZero : Fill::kPrevious;
  if (random_.OneIn(4)) {
    query.top = QueryTop{1 + random_.Below(4), *ParseFunction("by", kFunctions[metric][random_.Below(6)])};
  }
  if (random_.OneIn(4)) ChooseComparison(query);
  query.limits.threads = 1 + random_.Below(3);
  return query;
}

Query ReportChoices::WideQuery(const ReportInfo& info) {
  static const char* const kFunctions[] = {"sum", "count", "avg", "min", "max", "last", "p50"};
  Query query{.report = "flights", .metrics = {{.name = "rate", .expression = "fuel / departures"}}};
  if (random_.OneIn(2)) query.metrics.push_back({.name = "departures"});
  ChooseTimes(info, query);
  query.function = *ParseFunction("function", kFunctions[random_.Below(7)]);
  if (random_.OneIn(2)) query.group_by.push_back(info.keys[random_.Below(info.keys.size())].name);
  if (random_.OneIn(3)) query.top = QueryTop{1 + random_.Below(4), query.function};
  if (!random_.OneIn(3)) ChooseComparison(query);
  query.explain = random_.OneIn(2);
  return query;
}

absl::StatusOr<QueryResult> AskBothWays(const Metadata& metadata, Query query) {
  query.use_rollups = true;
  auto with = RunQuery(metadata, query);
  query.use_rollups = false;
  const auto without = RunQuery(metadata, query);
  EXPECT_EQ(with.status(), without.status());
  if (!with.ok() || !without.ok()) return with;
  ExpectSameSeries(with->series, without->series, "with roll-ups");
  EXPECT_EQ(without->cost.from_rollups, 0u);
  return with;
}

uint64_t ExpectModelsAnswer(const Metadata& metadata, const ReportModel& model, const Query& query) {
  const auto result = AskBothWays(metadata, query);
  EXPECT_OK(result);
  if (!result.ok()) return 0;
  ExpectSameSeries(result->series, model.Answer(query), query.metrics[0].name);
  return result->cost.from_rollups;
}

}  // namespace kvstore::testing
