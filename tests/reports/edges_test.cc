#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/rollup.h"
#include "reports/writer.h"
#include "tests/reports/expression_model.h"
#include "tests/reports/memory_store.h"
#include "tests/reports/report_choices.h"
#include "tests/reports/report_model.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// A history so small that everything happens at an edge: of periods, of steps, of roll-ups, of what is
/// deleted and of what is asked for. report_history.h is for histories of any size.
namespace kvstore::reports {
namespace {

using kvstore::testing::ExpectModelsAnswer;
using kvstore::testing::ExpectModelsExpression;
using kvstore::testing::kExpressions;
using kvstore::testing::MemoryStore;
using kvstore::testing::Random;
using kvstore::testing::ReportModel;

constexpr int64_t kSecond = 1'000;
/// All points lie before this time, in some periods of four seconds.
constexpr int64_t kSeconds = 18;

class Edges {
 public:
  explicit Edges(uint64_t seed) : random_(seed), model_(ReportInfo{}) {
    store_.page_columns = random_.OneIn(2) ? 2 : 1'000;
    auto info = metadata_.Create({.name = "edges",
                                  .settings = {.resolution_ms = kSecond,
                                               .period_s = 4,
                                               .salts = static_cast<uint32_t>(1 + random_.Below(3))},
                                  .keys = {{"country", std::nullopt}, {"app", "?"}},
                                  .metrics = {{.name = "clicks"},
                                              {.name = "delay", .kind = MetricKind::kDistribution},
                                              {.name = "users", .kind = MetricKind::kDistinct},
                                              {.name = "cost"}}});
    EXPECT_OK(info);
    model_ = ReportModel(*info);
  }

  void Step() {
    switch (random_.Below(12)) {
      case 0:
        return Delete();
      case 1:
        EXPECT_OK(CompactReport(metadata_, "edges", {}));
        return;
      case 2:
        return Declare();
      case 3:
        EXPECT_OK(MakeRollups(metadata_, "edges", {.keep_all = true}));
        return;
      case 4:
        if (model_.info().keys.size() < 4 && random_.OneIn(4)) return AddKey();
        [[fallthrough]];
      case 5:
      case 6:
        return Write();
      case 7:
        return ExpectModelsExpression(metadata_, model_, AnyExpression());
      default:
        from_rollups_ += ExpectModelsAnswer(metadata_, model_, AnyQuery());
    }
  }

  uint64_t from_rollups() const { return from_rollups_; }

 private:
  /// A time at the beginning of a second, of a period or of nothing, or a millisecond away from it.
  int64_t AnyTime() {
    const auto second = static_cast<int64_t>(random_.Below(kSeconds + 3));
    const int64_t time = (random_.OneIn(2) ? second - second % 4 : second) * kSecond;
    return std::max<int64_t>(0, time + static_cast<int64_t>(random_.Below(3)) - 1);
  }

  static bool IsValue(size_t metric) { return metric == 0 || metric == 3; }

  std::string Value(size_t key) {
    if (key > 0 && random_.OneIn(3)) return *model_.info().keys[key].default_value;
    return "v" + std::to_string(random_.Below(3));
  }

  void Write() {
    std::vector<ReportModel::Point> points;
    for (uint64_t i = 1 + random_.Below(6); i > 0; --i) {
      ReportModel::Point& point = points.emplace_back();
      point.metric = random_.Below(4);
      for (size_t key = 0; key < model_.info().keys.size(); ++key) point.segments.push_back(Value(key));
      point.time = static_cast<int64_t>(random_.Below(kSeconds)) * kSecond;
      // Few different numbers, integers and real ones, so that ranks are equal.
      const auto number = static_cast<int64_t>(random_.Below(3));
      if (IsValue(point.metric)) {
        point.number = random_.OneIn(3) ? Number::Real(static_cast<double>(number)) : Number::Integer(number);
      }
      if (point.metric == 1) point.values = {static_cast<double>(number) - 1};
      if (point.metric == 2) point.members = {std::to_string(number)};
    }
    const bool add = random_.OneIn(3);
    Batch batch(model_.info());
    for (const ReportModel::Point& point : points) {
      const std::vector<std::optional<std::string_view>> segments(point.segments.begin(),
                                                                  point.segments.end());
      EXPECT_OK(IsValue(point.metric) ? batch.Add(point.metric, point.time, segments, point.number)
                : point.metric == 1   ? batch.AddDistribution(1, point.time, segments, point.values)
                                      : batch.AddDistinct(2, point.time, segments, point.members));
    }
    EXPECT_OK(WriteBatch(metadata_, batch, {.add = add}));
    model_.Write(points, add);
  }

  void Delete() {
    const int64_t from = AnyTime();
    const int64_t to = AnyTime();
    EXPECT_OK(DeletePoints(metadata_, model_.info(), {from, to}));
    model_.Delete({0, 1, 2, 3}, from, to);
  }

  void Declare() {
    std::vector<Rollup> rollups;
    for (const uint64_t step : {1, 2, 4}) {
      Rollup rollup{.step_ms = step * static_cast<uint64_t>(kSecond)};
      for (const SegmentKey& key : model_.info().keys) {
        if (random_.OneIn(2)) rollup.keys.push_back(key.name);
      }
      if (random_.OneIn(2)) rollups.push_back(rollup);
    }
    EXPECT_OK(metadata_.SetRollups("edges", rollups));
  }

  void AddKey() {
    const SegmentKey key{"key " + std::to_string(model_.info().keys.size()), "none"};
    EXPECT_OK(metadata_.AddKey("edges", key));
    model_.AddKey(key);
  }

  Query AnyQuery() {
    Query query = AnyQueryOf(random_.Below(4));
    if (!random_.OneIn(3)) return query;
    static const char* const kDistances[] = {"1s", "4s", "6s", "1500ms"};
    query.compare_step = *ParseStep(kDistances[random_.Below(4)]);
    query.compare_sign = random_.OneIn(3) ? 1 : -1;
    return query;
  }

  /// A query of a calculation in place of the metric.
  Query AnyExpression() {
    Query query = AnyQueryOf(0);
    query.metrics[0] = {.name = "result",
                        .expression = kExpressions[random_.Below(std::size(kExpressions))].text};
    return query;
  }

  Query AnyQueryOf(size_t metric) {
    static const std::vector<std::string> kFunctions[] = {
        {"sum", "count", "avg", "min", "max", "last", "p50", "p100"},
        {"count", "min", "max", "p0", "p50"},
        {"distinct"},
        {"sum", "count", "avg", "min", "max", "last"}};
    const auto any_function = [&] {
      return *ParseFunction("function", kFunctions[metric][random_.Below(kFunctions[metric].size())]);
    };
    const int64_t a = AnyTime();
    const int64_t b = AnyTime();
    Query query{.report = "edges",
                .metrics = {{.name = model_.info().metrics[metric].name}},
                .from = std::min(a, b),
                .to = std::max(a, b),
                .function = any_function()};
    static const char* const kSteps[] = {"1s", "2s", "3s", "4s", "1500ms", "5s", "1d"};
    if (!random_.OneIn(3)) query.step = *ParseStep(kSteps[random_.Below(7)]);
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      QueryFilter& filter = query.filters.emplace_back(QueryFilter{.name = std::to_string(i)});
      const size_t key = random_.Below(model_.info().keys.size());
      auto& values = filter.where[model_.info().keys[key].name];
      if (random_.OneIn(4)) continue;
      values = std::vector<std::string>{Value(key)};
      if (random_.OneIn(2)) values->push_back(random_.OneIn(2) ? "nobody" : Value(key));
    }
    for (const SegmentKey& key : model_.info().keys) {
      if (random_.OneIn(3)) query.group_by.push_back(key.name);
    }
    if (random_.OneIn(3)) query.top = QueryTop{1 + random_.Below(3), any_function()};
    if (random_.OneIn(4)) query.fill = random_.OneIn(2) ? Fill::kZero : Fill::kPrevious;
    return query;
  }

  Random random_;
  MemoryStore store_;
  const Metadata metadata_{store_, "reports"};
  ReportModel model_;
  uint64_t from_rollups_ = 0;
};

TEST(Edges, EveryAnswerIsTheModels) {
  Random random(testing::Seed("edges of reports"));
  uint64_t from_rollups = 0;
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 100); i > 0 && !HasFailure(); --i) {
    const uint64_t seed = random.Next();
    Edges edges(seed);
    for (int step = 0; step < 150 && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step) + " of " + std::to_string(seed));
      edges.Step();
    }
    from_rollups += edges.from_rollups();
  }
  EXPECT_GT(from_rollups, 0u) << "otherwise this has tested nothing of them";
}

}  // namespace
}  // namespace kvstore::reports
