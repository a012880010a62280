#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reports/quantile_sketch.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "wire/convert_reports.h"

/// Batches of points as messages, there and back; and messages that would write what nobody has given.
namespace kvstore::wire {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the tests speak of nothing else
using testing::FailsWith;
using testing::Random;
using testing::Rounds;
using testing::Seed;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

ReportInfo Flights() {
  return {.name = "flights",
          .settings = {.resolution_ms = 1'000},
          .keys = {{"carrier", std::nullopt}, {"origin", "?"}},
          .metrics = {{.name = "departures"},
                      {.name = "delay", .kind = MetricKind::kDistribution},
                      {.name = "planes", .kind = MetricKind::kDistinct},
                      {.name = "fuel"}}};
}

Batch RandomBatch(Random& random, const ReportInfo& info) {
  Batch batch(info);
  for (uint64_t i = random.Below(30); i > 0; --i) {
    const std::string carrier = "c" + std::to_string(random.Below(4));
    const std::string origin = random.OneIn(3) ? "" : "o" + std::to_string(random.Below(3));
    std::vector<std::optional<std::string_view>> segments = {carrier, origin};
    if (random.OneIn(3)) segments[1] = std::nullopt;
    const int64_t time = static_cast<int64_t>(random.Below(1'000'000)) * 1'000;
    const size_t metric = random.Below(4);
    if (metric == 1) {
      const std::vector<double> values(1 + random.Below(3), static_cast<double>(random.Below(100)) / 3);
      EXPECT_OK(batch.AddDistribution(metric, time, segments, values));
    } else if (metric == 2) {
      const std::vector<std::string> members(random.Below(3), std::to_string(random.Next()));
      EXPECT_OK(batch.AddDistinct(metric, time, segments, members));
    } else {
      const Number number = random.OneIn(3) ? Number::Real(static_cast<double>(random.Below(100)) / 8)
                                            : Number::Integer(static_cast<int64_t>(random.Next()));
      EXPECT_OK(batch.Add(metric, time, segments, number));
    }
  }
  return batch;
}

/// A batch's points as text, those of each kind in their order: that is what a message keeps.
std::vector<std::string> PointsOf(const Batch& batch) {
  std::vector<std::string> by_kind[4];
  for (const Batch::Point& point : batch.points()) {
    const Batch::Series& series = batch.series()[point.series];
    const Metric& metric = batch.info().metrics[series.metric];
    std::string text = metric.name + " " + std::to_string(point.time);
    for (uint32_t key = 0; key < series.values.size(); ++key)
      text += " " + batch.values(key)[series.values[key]];
    if (metric.kind == MetricKind::kValue) {
      text += (point.number.is_integer() ? " integer " : " real ") + std::to_string(point.number.bits());
    } else {
      text += " sketch " + batch.sketches()[point.sketch];
    }
    by_kind[static_cast<size_t>(metric.kind)].push_back(text);
  }
  std::vector<std::string> all;
  for (const auto& texts : by_kind) all.insert(all.end(), texts.begin(), texts.end());
  return all;
}

TEST(ConvertBatch, ABatchComesBackAsItWas) {
  Random random(Seed("batches as messages"));
  const ReportInfo info = Flights();
  // The server may have asked for the metrics in another order, and for others.
  ReportInfo known = info;
  std::swap(known.metrics[0], known.metrics[3]);
  known.metrics.push_back({.name = "another"});
  for (uint64_t round = 0; round < Rounds("KV_TEST_OPERATIONS", 300); ++round) {
    const Batch batch = RandomBatch(random, info);
    v1::WritePointsRequest message;
    ToWire(batch, {.batch = "b1", .add = true}, message);
    v1::WritePointsRequest sent;
    ASSERT_TRUE(sent.ParseFromString(message.SerializeAsString()));
    EXPECT_EQ(sent.report(), "flights");
    EXPECT_EQ(sent.batch(), "b1");
    EXPECT_TRUE(sent.add());
    ASSERT_OK_AND_ASSIGN(const Batch back, FromWire(sent, known));
    EXPECT_EQ(PointsOf(back), PointsOf(batch));
  }
}

TEST(ConvertBatch, AMessageNamesTheMetricsOfItsPointsAlone) {
  ReportInfo info = Flights();
  for (int i = 0; i < 1'000; ++i) info.metrics.push_back({.name = "m" + std::to_string(i)});
  Batch batch(info);
  const std::vector<std::optional<std::string_view>> segments = {"UA", std::nullopt};
  for (const size_t metric : {700, 3, 700}) ASSERT_OK(batch.Add(metric, 1'000, segments, Number::Integer(1)));
  v1::WritePointsRequest message;
  ToWire(batch, {}, message);
  ASSERT_EQ(message.metrics_size(), 2);
  EXPECT_EQ(message.metrics(0), "m696");
  EXPECT_EQ(message.metrics(1), "fuel");
  ASSERT_OK_AND_ASSIGN(const Batch back, FromWire(message, info));
  EXPECT_EQ(PointsOf(back), PointsOf(batch));
}

/// A message as another client than ours would send it: with members and values, and a key left out.
v1::WritePointsRequest PlainMessage() {
  v1::WritePointsRequest message;
  for (const char* metric : {"departures", "delay", "planes"}) message.add_metrics(metric);
  for (const uint32_t metric : {0, 1, 2}) message.add_series_metrics(metric);
  v1::SegmentColumn& carriers = *message.add_keys();
  carriers.set_key("carrier");
  carriers.add_values("UA");
  for (int i = 0; i < 3; ++i) carriers.add_series_values(1);
  message.mutable_values()->add_series(0);
  message.mutable_values()->add_times(1'000);
  message.mutable_values()->mutable_values()->add_integers(7);
  message.mutable_distributions()->add_series(1);
  message.mutable_distributions()->add_times(1'000);
  message.mutable_distributions()->add_counts(2);
  message.mutable_distributions()->add_values(1.5);
  message.mutable_distributions()->add_values(-2);
  for (const int64_t time : {1'000, 2'000}) {
    message.mutable_distincts()->add_series(2);
    message.mutable_distincts()->add_times(time);
  }
  message.mutable_distincts()->add_counts(0);
  message.mutable_distincts()->add_counts(1);
  message.mutable_distincts()->add_members("N14228");
  return message;
}

TEST(ConvertBatch, MembersAndValuesAreMadeIntoSketches) {
  const ReportInfo info = Flights();
  ASSERT_OK_AND_ASSIGN(const Batch batch, FromWire(PlainMessage(), info));
  Batch expected(info);
  const std::vector<std::optional<std::string_view>> segments = {"UA", std::nullopt};
  ASSERT_OK(expected.Add(0, 1'000, segments, Number::Integer(7)));
  ASSERT_OK(expected.AddDistribution(1, 1'000, segments, std::vector<double>{1.5, -2}));
  ASSERT_OK(expected.AddDistinct(2, 1'000, segments, {}));
  ASSERT_OK(expected.AddDistinct(2, 2'000, segments, std::vector<std::string>{"N14228"}));
  EXPECT_EQ(PointsOf(batch), PointsOf(expected));
}

struct Mistake {
  std::function<void(v1::WritePointsRequest&)> make;
  const char* text;
};

TEST(ConvertBatch, HostileMessagesAreRefused) {
  const ReportInfo info = Flights();
  ASSERT_OK(FromWire(PlainMessage(), info));
  const std::vector<Mistake> mistakes = {
      {[](auto& m) { m.set_series_metrics(1, 3); }, "series_metrics[1]: 3 is none of the 3"},
      {[](auto& m) { m.add_series_metrics(0); }, "keys[0].series_values: 3 entries for 4 series"},
      {[](auto& m) { m.mutable_keys(0)->set_key("colour"); }, "keys[0]: report 'flights' has no segment key"},
      {[](auto& m) { *m.add_keys() = m.keys(0); }, "keys[1]: 'carrier' is named twice"},
      {[](auto& m) { m.mutable_keys(0)->set_series_values(2, 2); }, "keys[0].series_values[2]: 2 is none"},
      {[](auto& m) { m.mutable_keys(0)->set_series_values(0, UINT32_MAX); }, "is none of the 2"},
      {[](auto& m) { m.mutable_keys(0)->set_series_values(0, 0); },
       "values[0].segments: 'carrier' is missing"},
      {[](auto& m) { m.mutable_keys(0)->set_values(0, std::string(513, 'x')); }, "values[0].segments"},
      {[](auto& m) { m.mutable_values()->set_series(0, 3); }, "values.series[0]: 3 is none of the 3"},
      {[](auto& m) { m.mutable_values()->set_series(0, UINT32_MAX); }, "values.series[0]"},
      {[](auto& m) { m.mutable_values()->add_times(1'000); }, "values.times: 2 entries for 1 points"},
      {[](auto& m) { m.mutable_values()->set_times(0, 1'001); }, "values[0].time"},
      {[](auto& m) { m.mutable_values()->set_times(0, -1'000); }, "values[0].time"},
      {[](auto& m) { m.mutable_values()->set_times(0, INT64_MAX); }, "values[0].time"},
      {[](auto& m) { m.mutable_values()->mutable_values()->add_integers(1); },
       "values.values: 2 numbers for 1 points"},
      {[](auto& m) {
         m.mutable_values()->mutable_values()->clear_integers();
         m.mutable_values()->mutable_values()->add_reals(std::nan(""));
       },
       "values.values: number 0 is not finite"},
      {[](auto& m) { m.mutable_values()->set_series(0, 1); },
       "values[0].metric 'delay' is of kind distribution"},
      {[](auto& m) { m.mutable_distributions()->set_values(1, HUGE_VAL); }, "distributions[0].values"},
      {[](auto& m) { m.mutable_distributions()->set_counts(0, 3); }, "distributions.counts: the sum is 3"},
      {[](auto& m) { m.mutable_distributions()->set_counts(0, UINT32_MAX); },
       "distributions.counts: the sum is 4294967295"},
      {[](auto& m) { m.mutable_distributions()->add_counts(0); },
       "distributions.counts: 2 entries for 1 points"},
      {[](auto& m) {
         m.mutable_distributions()->set_counts(0, 0);
         m.mutable_distributions()->clear_values();
       },
       "at least one number"},
      {[](auto& m) { m.mutable_distincts()->set_counts(1, 0); }, "distincts.counts: the sum is 0"},
      {[](auto& m) { m.mutable_distincts()->set_series(1, 1); }, "distincts[1].metric 'delay'"},
      {[](auto& m) { m.mutable_distincts()->add_sketches("x"); },
       "distincts.sketches: 1 entries for 2 points"},
      {[](auto& m) {
         m.mutable_distributions()->add_sketches("x");
         m.mutable_distributions()->clear_values();
       },
       "leave them out where there are sketches"},
      {[](auto& m) {
         m.mutable_distributions()->clear_counts();
         m.mutable_distributions()->clear_values();
         m.mutable_distributions()->add_sketches("not a sketch");
       },
       "distributions[0].sketch: the bytes are no sketch of a distribution"},
      {[](auto& m) {
         m.mutable_distincts()->clear_counts();
         m.mutable_distincts()->clear_members();
         for (int i = 0; i < 2; ++i) m.mutable_distincts()->add_sketches(std::string("\x01\x00\xff", 3));
       },
       "distincts[0].sketch: the bytes are no sketch of a set"},
      {[](auto& m) {
         m.mutable_distributions()->clear_counts();
         m.mutable_distributions()->clear_values();
         m.mutable_distributions()->add_sketches(QuantileSketch().Encode());
       },
       "at least one number"},
  };
  for (const Mistake& mistake : mistakes) {
    v1::WritePointsRequest message = PlainMessage();
    mistake.make(message);
    EXPECT_THAT(FromWire(message, info), FailsWith(kInvalid, mistake.text));
  }
  v1::WritePointsRequest message = PlainMessage();
  message.set_metrics(0, "no such");
  EXPECT_THAT(FromWire(message, info),
              FailsWith(absl::StatusCode::kNotFound, "metrics[0]: report 'flights'"));
}

TEST(ConvertBatch, AnEmptyMessageIsAnEmptyBatch) {
  const ReportInfo info = Flights();
  ASSERT_OK_AND_ASSIGN(const Batch batch, FromWire(v1::WritePointsRequest(), info));
  EXPECT_EQ(batch.size(), 0u);
}

}  // namespace
}  // namespace kvstore::wire
