#include "wire/convert_reports.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "wire/number_columns.h"

/// The types of reports as messages, there and back; and messages that nobody who means well sends.
namespace kvstore::wire {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the tests speak of nothing else
using testing::FailsWith;
using testing::Random;
using testing::Rounds;
using testing::Seed;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string RandomText(Random& random) {
  static const std::vector<std::string> kTexts = {"", "US", "Zürich", "a b", "\"", "日本", "x/y", "*"};
  return kTexts[random.Below(kTexts.size())] + std::to_string(random.Below(5));
}

Number RandomNumber(Random& random) {
  switch (random.Below(6)) {
    case 0:
      return Number::Integer(std::numeric_limits<int64_t>::min());
    case 1:
      return Number::Integer(std::numeric_limits<int64_t>::max() - 1);
    case 2:
      return Number::Real(-0.0);
    case 3:
      return Number::Real(static_cast<double>(random.Next()) / 7);
    default:
      return Number::Integer(static_cast<int64_t>(random.Next()));
  }
}

template <typename Message>
Message Sent(const Message& message) {
  Message received;
  EXPECT_TRUE(received.ParseFromString(message.SerializeAsString()));
  return received;
}

// ---- numbers ----

TEST(NumberColumns, AnyMixtureComesBackAsItWas) {
  Random random(Seed("number columns"));
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 500); ++round) {
    std::vector<Number> numbers;
    const uint64_t kinds = random.Below(3);  // integers, reals, both
    for (uint64_t i = random.Below(20); i > 0; --i) {
      const bool real = kinds == 1 || (kinds == 2 && random.OneIn(2));
      numbers.push_back(real ? Number::Real(static_cast<double>(random.Below(9)) / 4)
                             : Number::Integer(static_cast<int64_t>(random.Next())));
    }
    v1::Numbers column;
    for (const Number& number : numbers) AddNumber(number, column);
    if (kinds < 2) {
      EXPECT_EQ(column.is_real_size(), 0) << "columns of one kind say it by their list";
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Number> back, NumbersOf(Sent(column), numbers.size(), "n"));
    EXPECT_EQ(back, numbers);
  }
}

TEST(NumberColumns, UnsoundOnesAreRefused) {
  v1::Numbers column;
  column.add_integers(1);
  EXPECT_THAT(NumbersOf(column, 2, "n"), FailsWith(kInvalid, "n: 1 numbers for 2 points"));
  column.add_reals(0.5);
  EXPECT_THAT(NumbersOf(column, 2, "n"), FailsWith(kInvalid, "n: is_real is missing"));
  column.add_is_real(true);
  EXPECT_THAT(NumbersOf(column, 2, "n"), FailsWith(kInvalid, "is_real has 1 entries"));
  column.add_is_real(true);
  EXPECT_THAT(NumbersOf(column, 2, "n"), FailsWith(kInvalid, "more numbers of a kind than there are, at 1"));
  column.set_is_real(1, false);
  EXPECT_OK(NumbersOf(column, 2, "n"));
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    column.set_reals(0, value);
    EXPECT_THAT(NumbersOf(column, 2, "n"), FailsWith(kInvalid, "number 0 is not finite"));
  }
}

// ---- reports ----

ReportInfo RandomReport(Random& random) {
  ReportInfo info{.name = RandomText(random)};
  info.settings = {.id = static_cast<uint32_t>(random.Below(100)),
                   .resolution_ms = random.Next(),
                   .period_s = random.Next(),
                   .salts = static_cast<uint32_t>(random.Below(65)),
                   .retention_ms = random.Below(2) * random.Next()};
  for (uint64_t i = random.Below(4); i > 0; --i) {
    SegmentKey& key = info.keys.emplace_back(SegmentKey{.name = RandomText(random)});
    if (random.OneIn(2)) key.default_value = random.OneIn(3) ? "" : RandomText(random);
  }
  for (uint64_t i = random.Below(4); i > 0; --i) {
    info.metrics.push_back({.id = static_cast<uint32_t>(random.Below(9)),
                            .name = RandomText(random),
                            .kind = static_cast<MetricKind>(1 + random.Below(3))});
  }
  for (uint64_t i = random.Below(3); i > 0; --i) {
    Rollup& rollup = info.rollups.emplace_back(Rollup{.step_ms = random.Next()});
    for (uint64_t key = random.Below(3); key > 0; --key) rollup.keys.push_back(RandomText(random));
  }
  return info;
}

TEST(ConvertReports, AReportComesBackAsItWas) {
  Random random(Seed("reports as messages"));
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 500); ++round) {
    const ReportInfo info = RandomReport(random);
    v1::Report message;
    ToWire(info, message);
    ASSERT_OK_AND_ASSIGN(const ReportInfo back, FromWire(Sent(message)));
    EXPECT_EQ(back.name, info.name);
    EXPECT_EQ(back.settings, info.settings);
    EXPECT_EQ(back.keys, info.keys);
    EXPECT_EQ(back.metrics, info.metrics);
    EXPECT_EQ(back.rollups, info.rollups);
  }
}

TEST(ConvertReports, WhatIsNotGivenIsTheStandard) {
  ASSERT_OK_AND_ASSIGN(const ReportInfo info, FromWire(v1::Report()));
  EXPECT_EQ(info.settings, ReportSettings());
  v1::Metric metric;
  ASSERT_OK_AND_ASSIGN(const Metric read, FromWire(metric));
  EXPECT_EQ(read.kind, MetricKind::kValue);
  metric.set_kind(static_cast<v1::MetricKind>(9));
  EXPECT_THAT(FromWire(metric), FailsWith(kInvalid, "kind: the value 9 is not one that this program knows"));
}

TEST(ConvertReports, AChangeComesBackAsItWas) {
  Random random(Seed("changes of reports as messages"));
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 300); ++round) {
    const ReportInfo source = RandomReport(random);
    ReportChange change{.add_metrics = source.metrics};
    if (!source.keys.empty()) change.add_key = source.keys.front();
    if (random.OneIn(2)) change.retention_ms = random.OneIn(2) ? 0 : random.Next();
    if (random.OneIn(2)) change.rollups = source.rollups;
    v1::AlterReportRequest message;
    ToWire(change, message);
    ASSERT_OK_AND_ASSIGN(const ReportChange back, FromWire(Sent(message)));
    EXPECT_EQ(back.add_key, change.add_key);
    EXPECT_EQ(back.add_metrics, change.add_metrics);
    EXPECT_EQ(back.retention_ms, change.retention_ms);
    EXPECT_EQ(back.rollups, change.rollups) << "to have none is another wish than to leave them as they are";
  }
}

// ---- queries ----

Function RandomFunction(Random& random) {
  Function function{.kind = static_cast<Function::Kind>(random.Below(8))};
  if (function.kind == Function::Kind::kPercentile)
    function.percentile = static_cast<double>(random.Below(1'001)) / 10;
  return function;
}

Step RandomStep(Random& random) {
  return {.unit = static_cast<Step::Unit>(random.Below(4)),
          .count = static_cast<int64_t>(1 + random.Below(99))};
}

Query RandomQuery(Random& random) {
  Query query{.report = RandomText(random)};
  for (uint64_t i = random.Below(3); i > 0; --i)
    query.metrics.push_back({RandomText(random), random.OneIn(2) ? "a / b" : ""});
  query.from = static_cast<int64_t>(random.Next());
  query.to = static_cast<int64_t>(random.Next());
  if (random.OneIn(2)) query.step = RandomStep(random);
  query.zone = *LoadZone(random.OneIn(2) ? "Europe/Berlin" : "UTC");
  for (uint64_t i = random.Below(3); i > 0; --i) {
    QueryFilter& filter = query.filters.emplace_back(QueryFilter{.name = RandomText(random)});
    for (uint64_t key = random.Below(3); key > 0; --key) {
      auto& values = filter.where[RandomText(random)];
      if (random.OneIn(3)) continue;
      values.emplace();
      for (uint64_t value = random.Below(3); value > 0; --value) values->push_back(RandomText(random));
    }
  }
  for (uint64_t i = random.Below(3); i > 0; --i) query.group_by.push_back(RandomText(random));
  query.function = RandomFunction(random);
  if (random.OneIn(2)) query.top = {.n = random.Below(9), .by = RandomFunction(random)};
  query.fill = static_cast<Fill>(random.Below(3));
  if (random.OneIn(2)) query.compare_step = RandomStep(random);
  query.compare_sign = random.OneIn(2) ? 1 : -1;
  query.partial = random.OneIn(2);
  query.explain = random.OneIn(2);
  query.use_rollups = random.OneIn(2);
  return query;
}

TEST(ConvertReports, AQueryComesBackAsItWas) {
  Random random(Seed("queries as messages"));
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 1'000); ++round) {
    const Query query = RandomQuery(random);
    v1::QueryReportRequest message;
    ToWire(query, message);
    ASSERT_OK_AND_ASSIGN(const Query back, FromWire(Sent(message)));
    EXPECT_EQ(back.report, query.report);
    ASSERT_EQ(back.metrics.size(), query.metrics.size());
    for (size_t i = 0; i < query.metrics.size(); ++i) {
      EXPECT_EQ(back.metrics[i].name, query.metrics[i].name);
      EXPECT_EQ(back.metrics[i].expression, query.metrics[i].expression);
    }
    EXPECT_EQ(back.from, query.from);
    EXPECT_EQ(back.to, query.to);
    EXPECT_EQ(back.step, query.step);
    EXPECT_EQ(back.zone, query.zone);
    ASSERT_EQ(back.filters.size(), query.filters.size());
    for (size_t i = 0; i < query.filters.size(); ++i) {
      EXPECT_EQ(back.filters[i].name, query.filters[i].name);
      EXPECT_EQ(back.filters[i].where, query.filters[i].where);
    }
    EXPECT_EQ(back.group_by, query.group_by);
    EXPECT_EQ(back.function, query.function);
    ASSERT_EQ(back.top.has_value(), query.top.has_value());
    if (query.top) {
      EXPECT_EQ(back.top->n, query.top->n);
      EXPECT_EQ(back.top->by, query.top->by);
    }
    EXPECT_EQ(back.fill, query.fill);
    EXPECT_EQ(back.compare_step, query.compare_step);
    EXPECT_EQ(back.compare_sign, query.compare_sign);
    EXPECT_EQ(back.partial, query.partial);
    EXPECT_EQ(back.explain, query.explain);
    EXPECT_EQ(back.use_rollups, query.use_rollups);
    EXPECT_EQ(back.limits.max_memory_bytes, QueryLimits().max_memory_bytes);
  }
}

/// A change that makes a query one that nobody who means well sends, and a part of the error.
struct Mistake {
  std::function<void(v1::QueryReportRequest&)> make;
  const char* text;
};

TEST(ConvertReports, QueriesThatAQueryCannotHoldAreRefused) {
  const std::vector<Mistake> mistakes = {
      {[](auto& q) { q.mutable_step()->set_unit(static_cast<v1::Step::Unit>(7)); },
       "step.unit: the value 7 is not one that this program knows"},
      {[](auto& q) { q.mutable_step()->set_count(0); }, "step: a count of 0"},
      {[](auto& q) { q.mutable_step()->set_count(INT64_MIN); }, "step: a count of -"},
      {[](auto& q) { q.mutable_step()->set_count(INT64_MAX); }, "100 years"},
      {[](auto& q) {
         q.mutable_compare()->set_unit(v1::Step::UNIT_MONTHS);
         q.mutable_compare()->set_count(100'000);
       },
       "compare: a count of 100000"},
      {[](auto& q) { q.set_time_zone("../../etc/passwd"); }, "timezone"},
      {[](auto& q) { q.set_time_zone("Mars/Olympus"); }, "timezone"},
      {[](auto& q) { q.mutable_function()->set_kind(static_cast<v1::Function::Kind>(-1)); },
       "function.kind: the value -1 is not one that this program knows"},
      {[](auto& q) { q.mutable_function()->set_kind(static_cast<v1::Function::Kind>(9)); }, "function.kind"},
      {[](auto& q) {
         q.mutable_function()->set_kind(v1::Function::KIND_PERCENTILE);
         q.mutable_function()->set_percentile(std::nan(""));
       },
       "function.percentile: must be from 0 to 100"},
      {[](auto& q) {
         q.mutable_top()->mutable_by()->set_kind(v1::Function::KIND_PERCENTILE);
         q.mutable_top()->mutable_by()->set_percentile(100.5);
       },
       "top.by.percentile"},
      {[](auto& q) { q.set_fill(static_cast<v1::Fill>(4)); },
       "fill: the value 4 is not one that this program knows"},
      {[](auto& q) {
         auto& filter = *q.add_filters();
         filter.add_where()->set_key("k");
         filter.add_where()->set_key("k");
       },
       "filters[0].where: key 'k' is named twice"},
      {[](auto& q) {
         auto& match = *q.add_filters()->add_where();
         match.set_any(true);
         match.add_values("v");
       },
       "any matches"},
  };
  for (const Mistake& mistake : mistakes) {
    v1::QueryReportRequest request;
    mistake.make(request);
    EXPECT_THAT(FromWire(request), FailsWith(kInvalid, mistake.text));
  }
}

// ---- answers ----

std::vector<TimeValue> RandomPoints(Random& random) {
  std::vector<TimeValue> points;
  int64_t time = -5;
  for (uint64_t i = random.Below(6); i > 0; --i)
    points.emplace_back(time += static_cast<int64_t>(1 + random.Below(1'000)), RandomNumber(random));
  return points;
}

TEST(ConvertReports, AnAnswerComesBackAsItWas) {
  Random random(Seed("answers as messages"));
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 500); ++round) {
    Query query{.group_by = {"country", "gender"}};
    ResultSeries series{.metric = "m", .filter = RandomText(random), .points = RandomPoints(random)};
    for (const std::string& key : query.group_by) series.segments.emplace_back(key, RandomText(random));
    if (random.OneIn(2)) {
      query.compare_step = Step();
      series.compared = RandomPoints(random);
    }
    v1::QueryReportResponse::Series message;
    ToWire(series, message);
    auto sent = Sent(message);
    ASSERT_OK_AND_ASSIGN(const ResultSeries back, FromWire(sent, query));
    EXPECT_EQ(back.metric, series.metric);
    EXPECT_EQ(back.filter, series.filter);
    EXPECT_EQ(back.segments, series.segments);
    EXPECT_EQ(back.points, series.points);
    EXPECT_EQ(back.compared, series.compared);
  }
}

TEST(ConvertReports, TheEndOfAnAnswerComesBackAsItWas) {
  QueryResult result{.missing = {"shard 7 on MySQL001A"},
                     .cost = {1, 2, 3, 4, 5, 6.5},
                     .parts = {{"m", 3, {7, 8, 9, 10, 11, 12.25}}}};
  v1::QueryReportResponse::End message;
  ToWire(result, message);
  QueryResult back;
  FromWire(Sent(message), back);
  EXPECT_EQ(back.missing, result.missing);
  EXPECT_EQ(back.cost.from_rollups, 5u);
  EXPECT_EQ(back.cost.ms, 6.5);
  ASSERT_EQ(back.parts.size(), 1u);
  EXPECT_EQ(back.parts[0].metric, "m");
  EXPECT_EQ(back.parts[0].salt, 3u);
  EXPECT_EQ(back.parts[0].cost.rows, 7u);
  EXPECT_EQ(back.parts[0].cost.bytes, 10u);
  // Messages of hosts may quote any bytes, and there may be any number of them.
  result.missing.assign(5'000, "host \xff" + std::string(10'000, 'x'));
  ToWire(result, message);
  FromWire(Sent(message), back);
  EXPECT_LT(message.ByteSizeLong(), size_t{4} << 20);
  EXPECT_EQ(back.missing.back(), "and 4000 more");
}

TEST(ConvertReports, AnswersThatFitNoQueryAreRefused) {
  const Query query{.group_by = {"country"}};
  v1::QueryReportResponse::Series good;
  good.add_segments("US");
  good.mutable_points()->add_times(5);
  good.mutable_points()->mutable_values()->add_integers(1);
  auto copy = good;
  EXPECT_OK(FromWire(copy, query));
  copy = good;
  copy.add_segments("f");
  EXPECT_THAT(FromWire(copy, query), FailsWith(kInvalid, "series.segments: 2 values for 1 keys"));
  copy = good;
  copy.mutable_compared();
  EXPECT_THAT(FromWire(copy, query), FailsWith(kInvalid, "series.compared"));
  copy = good;
  copy.mutable_points()->add_times(5);
  EXPECT_THAT(FromWire(copy, query), FailsWith(kInvalid, "1 numbers for 2 points"));
  copy.mutable_points()->mutable_values()->add_integers(2);
  EXPECT_THAT(FromWire(copy, query), FailsWith(kInvalid, "not ascending"));
}

}  // namespace
}  // namespace kvstore::wire
