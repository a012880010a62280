#include "tests/reports/report_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/metadata.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/report_model.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the history speaks of nothing else

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kHours = 24 * 40;  // the stretch of time that points lie in

class History {
 public:
  History(KVStore& store, uint64_t seed, bool faulty)
      : random_(seed), faulty_(faulty), metadata_(store, "reports"), model_(ReportInfo{}) {}

  void Run(uint64_t steps) {
    ReportInfo info{.name = "flights",
                    .settings = {.resolution_ms = kHour,
                                 .period_s = 86'400 * (1 + random_.Below(9)),
                                 .salts = static_cast<uint32_t>(1 + random_.Below(5))},
                    .keys = {{"carrier", std::nullopt}, {"origin", "?"}},
                    .metrics = {{.name = "departures"},
                                {.name = "delay", .kind = MetricKind::kDistribution},
                                {.name = "planes", .kind = MetricKind::kDistinct},
                                {.name = "fuel"}}};
    auto created = metadata_.Create(info);
    ASSERT_OK(created);
    model_ = ReportModel(*created);
    for (uint64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      Step();
    }
  }

 private:
  void Step() {
    switch (random_.Below(20)) {
      case 0:
        return Delete();
      case 1:
        return Compact();
      case 2:
        if (model_.info().keys.size() < 4 && random_.OneIn(4)) return AddKey();
        return RepeatOld();
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        return Write();
      default:
        return Ask();
    }
  }

  std::string Value(size_t key) {
    // The default's value is also written by name.
    const uint64_t number = random_.Below(key == 0 ? 5 : 4);
    return number == 0 && key > 0 ? *model_.info().keys[key].default_value : "v" + std::to_string(number);
  }

  ReportModel::Point RandomPoint() {
    ReportModel::Point point{.metric = random_.Below(4)};
    for (size_t key = 0; key < model_.info().keys.size(); ++key) point.segments.push_back(Value(key));
    // Most are young, some of any age.
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

  Batch BatchOf(const std::vector<ReportModel::Point>& points) {
    Batch batch(model_.info());
    for (const ReportModel::Point& point : points) {
      std::vector<std::optional<std::string_view>> segments;
      for (size_t key = 0; key < point.segments.size(); ++key) {
        const auto& by_default = model_.info().keys[key].default_value;
        const bool left_out = by_default && *by_default == point.segments[key] && random_.OneIn(2);
        segments.push_back(left_out ? std::nullopt : std::optional<std::string_view>(point.segments[key]));
      }
      switch (model_.info().metrics[point.metric].kind) {
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

  void Write() {
    std::vector<ReportModel::Point> points;
    for (uint64_t i = 1 + random_.Below(random_.OneIn(5) ? 300 : 20); i > 0; --i)
      points.push_back(RandomPoint());
    WriteBatchOptions options;
    options.add = random_.OneIn(3);
    if (faulty_ || random_.OneIn(2)) options.batch = "batch " + std::to_string(batches_++);
    for (int tries = 0;; ++tries) {
      const auto written = WriteBatch(metadata_, BatchOf(points), options);
      if (written.ok()) break;
      ASSERT_TRUE(faulty_ && tries < 1'000) << written.status();
    }
    model_.Write(points, options.add);
    if (!options.batch.empty()) {
      old_ = {points, options};
      old_keys_ = model_.info().keys.size();
    }
  }

  /// A batch that has long been written is written again, as a loader does that missed the answer.
  void RepeatOld() {
    if (old_.first.empty() || old_keys_ != model_.info().keys.size()) return;
    for (int tries = 0;; ++tries) {
      const auto written = WriteBatch(metadata_, BatchOf(old_.first), old_.second);
      if (written.ok()) return;
      ASSERT_TRUE(faulty_ && tries < 1'000) << written.status();
    }
  }

  void Delete() {
    ReportInfo info = model_.info();
    std::set<size_t> metrics;
    info.metrics.clear();
    for (size_t i = 0; i < 4; ++i) {
      if (!random_.OneIn(2)) continue;
      metrics.insert(i);
      info.metrics.push_back(model_.info().metrics[i]);
    }
    const auto from = static_cast<int64_t>(random_.Below(kHours));
    const TimeSpan span{from * kHour, (from + 1 + static_cast<int64_t>(random_.Below(72))) * kHour};
    for (int tries = 0;; ++tries) {
      const auto deleted = DeletePoints(metadata_, info, span);
      if (deleted.ok()) break;
      ASSERT_TRUE(faulty_ && tries < 1'000) << deleted.status();
    }
    model_.Delete(metrics, span.from, span.to);
  }

  void Compact() {
    CompactionOptions options;
    // Small, so that rows have runs in their middle.
    if (random_.OneIn(2)) options.max_bytes = 500 + random_.Below(3'000);
    const auto result = CompactReport(metadata_, "flights", options);
    // One that broke off is not tried again: what it leaves behind is what is tested.
    if (!faulty_) {
      ASSERT_OK(result);
    }
  }

  void AddKey() {
    const SegmentKey key{"key " + std::to_string(model_.info().keys.size()), "none"};
    for (int tries = 0; tries < 1'000; ++tries) {
      const absl::Status added = metadata_.AddKey("flights", key);
      if (added.ok()) break;
      ASSERT_TRUE(faulty_) << added;
    }
    model_.AddKey(key);
  }

  Query RandomQuery() {
    static const char* const kFunctions[][6] = {
        {"sum", "count", "avg", "min", "max", "last"},
        {"p50", "p99", "count", "min", "max", "p0"},
        {"distinct", "distinct", "distinct", "distinct", "distinct", "distinct"},
        {"sum", "p50", "avg", "p99.9", "p0", "last"}};
    static const char* const kSteps[] = {"1h", "6h", "1d", "1w", "1mo"};
    static const char* const kZones[] = {"UTC", "America/New_York", "Asia/Kolkata"};
    const size_t metric = random_.Below(4);
    Query query{.report = "flights", .metrics = {{.name = model_.info().metrics[metric].name}}};
    query.from = static_cast<int64_t>(random_.Below(kHours)) * kHour;
    query.to = query.from + 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(kHours * kHour)));
    if (!random_.OneIn(3)) query.step = *ParseStep(kSteps[random_.Below(5)]);
    query.zone = *LoadZone(kZones[random_.Below(3)]);
    query.function = *ParseFunction("function", kFunctions[metric][random_.Below(6)]);
    for (uint64_t i = random_.Below(4); i > 0; --i) {
      QueryFilter& filter = query.filters.emplace_back();
      filter.name = "filter " + std::to_string(i);
      for (size_t key = 0; key < model_.info().keys.size(); ++key) {
        if (random_.OneIn(2)) continue;
        auto& values = filter.where[model_.info().keys[key].name];
        if (random_.OneIn(4)) continue;
        values.emplace();
        for (uint64_t v = random_.Below(3); v > 0; --v)
          values->push_back(random_.OneIn(8) ? "no such" : Value(key));
      }
    }
    for (const SegmentKey& key : model_.info().keys) {
      if (random_.OneIn(3)) query.group_by.push_back(key.name);
    }
    if (random_.OneIn(4)) query.fill = random_.OneIn(2) ? Fill::kZero : Fill::kPrevious;
    if (random_.OneIn(4)) {
      query.top = QueryTop{1 + random_.Below(4), *ParseFunction("by", kFunctions[metric][random_.Below(6)])};
    }
    query.limits.threads = 1 + random_.Below(3);
    return query;
  }

  void Ask() {
    const Query query = RandomQuery();
    const auto result = RunQuery(metadata_, query);
    ASSERT_OK(result);
    const auto expected = model_.Answer(query);
    ASSERT_EQ(result->series.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const ResultSeries& got = result->series[i];
      EXPECT_EQ(got.filter, expected[i].filter);
      EXPECT_EQ(got.segments, expected[i].segments);
      ASSERT_EQ(got.points.size(), expected[i].points.size()) << query.metrics[0].name;
      for (size_t p = 0; p < got.points.size(); ++p) {
        EXPECT_EQ(got.points[p].first, expected[i].points[p].first);
        const Number& a = got.points[p].second;
        const Number& b = expected[i].points[p].second;
        EXPECT_TRUE(a == b) << query.metrics[0].name << ": " << a.AsReal() << " instead of " << b.AsReal();
      }
    }
  }

  Random random_;
  const bool faulty_;
  const Metadata metadata_;
  ReportModel model_;
  uint64_t batches_ = 0;
  std::pair<std::vector<ReportModel::Point>, WriteBatchOptions> old_;
  size_t old_keys_ = 0;
};

}  // namespace

void RunReportHistory(KVStore& store, uint64_t seed, uint64_t steps, bool faulty) {
  History(store, seed, faulty).Run(steps);
}

}  // namespace kvstore::testing
