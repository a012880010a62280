#include "tests/reports/expression_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/reports/report_choices.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the model speaks of nothing else

using Value = std::optional<Number>;
using Segments = std::vector<std::pair<std::string, std::string>>;
/// A series of an answer: the filter's number, and the segments.
using Name = std::pair<size_t, Segments>;
using Steps = std::map<int64_t, Number>;

Value Quotient(const Value& clicks, const Value& cost) {
  if (!clicks || !cost || cost->AsReal() == 0) return std::nullopt;
  return Number::Real(clicks->AsReal() / cost->AsReal());
}

Value Difference(const Value& clicks, const Value& cost) {
  if (!clicks || !cost) return std::nullopt;
  if (clicks->is_integer() && cost->is_integer()) {
    return Number::Integer(clicks->integer() - 2 * cost->integer());
  }
  return Number::Real(clicks->AsReal() - 2 * cost->AsReal());
}

Value Successor(const Value& clicks, const Value& /*cost*/) {
  if (!clicks) return std::nullopt;
  return clicks->is_integer() ? Number::Integer(clicks->integer() + 1) : Number::Real(clicks->real() + 1);
}

Value Itself(const Value& /*clicks*/, const Value& cost) { return cost; }

Value FilledBy(Fill fill, const Value& found, const Value& before) {
  if (found || fill == Fill::kNone) return found;
  return fill == Fill::kZero ? Number::Integer(0) : before;
}

/// Returns the model's answer for a metric without fill and rank.
std::map<Name, Steps> SeriesOf(const ReportModel& model, Query query, const char* metric) {
  query.metrics = {{.name = metric}};
  query.fill = Fill::kNone;
  query.top.reset();
  // The number of a filter takes the place of its name, which need not be its own.
  for (size_t i = 0; i < query.filters.size(); ++i) query.filters[i].name = std::to_string(i);
  std::map<Name, Steps> all;
  for (const ResultSeries& series : model.Answer(query)) {
    const size_t filter = series.filter.empty() ? 0 : std::stoul(series.filter);
    all[{filter, series.segments}] = Steps(series.points.begin(), series.points.end());
  }
  return all;
}

Value At(const std::map<Name, Steps>& all, const Name& name, int64_t step) {
  const auto series = all.find(name);
  if (series == all.end()) return std::nullopt;
  const auto found = series->second.find(step);
  return found == series->second.end() ? std::nullopt : Value(found->second);
}

const ModelExpression& ExpressionOf(const std::string& text) {
  return *std::find_if(std::begin(kExpressions), std::end(kExpressions),
                       [&](const ModelExpression& one) { return text == one.text; });
}

/// The model's answer.
class Expected {
 public:
  Expected(const ReportModel& model, const Query& query)
      : query_(query),
        expression_(ExpressionOf(query.metrics[0].expression)),
        clicks_(SeriesOf(model, query, "clicks")),
        cost_(SeriesOf(model, query, "cost")) {
    const StepGrid grid =
        query.step ? *StepGrid::Make(*query.step, query.zone, query.from, query.to, query.limits.max_steps)
                   : StepGrid::Whole(query.from, query.to);
    for (size_t i = 0; i < grid.size(); ++i) steps_.push_back(grid.start(i));
    if (!query.top) return;
    Query whole = query;
    whole.step.reset();
    whole.function = query.top->by;
    whole_clicks_ = SeriesOf(model, whole, "clicks");
    whole_cost_ = SeriesOf(model, whole, "cost");
  }

  std::vector<ResultSeries> Answer() const {
    const std::string text = expression_.text;
    std::map<Name, ResultSeries> all;
    for (const auto& [metric, series] : {std::pair{"clicks", &clicks_}, std::pair{"cost", &cost_}}) {
      // Series of which no metric of the calculation has points are not there.
      if (text.find(metric) == std::string::npos) continue;
      for (const auto& [name, steps] : *series) all[name] = SeriesFor(name);
    }
    std::vector<std::pair<Value, ResultSeries>> ranked;
    std::vector<ResultSeries> answer;
    const size_t filters = std::max<size_t>(query_.filters.size(), 1);
    for (size_t filter = 0; filter < filters; ++filter) {
      ranked.clear();
      for (const auto& [name, series] : all) {
        if (name.first != filter) continue;
        const Value rank =
            expression_.of(At(whole_clicks_, name, query_.from), At(whole_cost_, name, query_.from));
        if (query_.top && !rank) continue;
        ranked.emplace_back(rank, series);
      }
      if (query_.top) {
        std::stable_sort(ranked.begin(), ranked.end(),
                         [](const auto& a, const auto& b) { return a.first->AsReal() > b.first->AsReal(); });
        if (ranked.size() > query_.top->n) ranked.resize(query_.top->n);
      }
      for (auto& [rank, series] : ranked) answer.push_back(std::move(series));
    }
    return answer;
  }

 private:
  ResultSeries SeriesFor(const Name& name) const {
    ResultSeries series{.metric = query_.metrics[0].name, .segments = name.second};
    if (!query_.filters.empty()) series.filter = query_.filters[name.first].name;
    Value clicks;
    Value cost;
    Value value;
    for (const int64_t step : steps_) {
      clicks = FilledBy(query_.fill, At(clicks_, name, step), clicks);
      cost = FilledBy(query_.fill, At(cost_, name, step), cost);
      value = FilledBy(query_.fill, expression_.of(clicks, cost), value);
      if (value) series.points.emplace_back(step, *value);
    }
    return series;
  }

  const Query& query_;
  const ModelExpression& expression_;
  const std::map<Name, Steps> clicks_;
  const std::map<Name, Steps> cost_;
  std::map<Name, Steps> whole_clicks_;
  std::map<Name, Steps> whole_cost_;
  std::vector<int64_t> steps_;
};

}  // namespace

const ModelExpression kExpressions[4] = {{"clicks / cost", &Quotient},
                                         {"clicks - 2 * cost", &Difference},
                                         {"clicks + 1", &Successor},
                                         {"(cost)", &Itself}};

void ExpectModelsExpression(const Metadata& metadata, const ReportModel& model, const Query& query) {
  const auto result = AskBothWays(metadata, query);
  ASSERT_OK(result);
  const std::vector<ResultSeries> expected = Expected(model, query).Answer();
  const std::string& text = query.metrics[0].expression;
  ASSERT_EQ(result->series.size(), expected.size()) << text;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result->series[i].metric, expected[i].metric);
    EXPECT_EQ(result->series[i].filter, expected[i].filter) << text;
    EXPECT_EQ(result->series[i].segments, expected[i].segments) << text;
    EXPECT_TRUE(result->series[i].points == expected[i].points) << text << ", series " << i;
  }
}

}  // namespace kvstore::testing
