#include "tests/reports/report_model.h"

#include <algorithm>
#include <cmath>

#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"

namespace kvstore::testing {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the model speaks of nothing else
using Kind = Function::Kind;

/// Returns the result of a function for the points of a step, by the plainest means.
std::optional<Number> Compute(MetricKind metric, const Function& function,
                              const std::vector<const ReportModel::Point*>& points) {
  if (points.empty()) return std::nullopt;
  if (metric == MetricKind::kDistinct) {
    HyperLogLog all;
    for (const auto* point : points) {
      for (const std::string& member : point->members) all.Add(member);
    }
    return Number::Integer(std::llround(all.Estimate()));
  }
  if (metric == MetricKind::kDistribution) {
    QuantileSketch all;
    for (const auto* point : points) {
      for (const double value : point->values) all.Add(value);
    }
    if (function.kind == Kind::kCount) return Number::Integer(static_cast<int64_t>(all.count()));
    if (function.kind == Kind::kMin) return Number::Real(all.min());
    if (function.kind == Kind::kMax) return Number::Real(all.max());
    return Number::Real(all.Quantile(function.percentile / 100));
  }
  std::vector<Number> sorted;
  int64_t integers = 0;
  double reals = 0;  // eighths, whose sums are exact
  bool any_real = false;
  for (const auto* point : points) {
    sorted.push_back(point->number);
    any_real = any_real || !point->number.is_integer();
    if (point->number.is_integer()) {
      integers += point->number.integer();
    } else {
      reals += point->number.real();
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(), &Less);
  const double sum = static_cast<double>(integers) + reals;
  const auto count = static_cast<int64_t>(points.size());
  switch (function.kind) {
    case Kind::kSum:
      return any_real ? Number::Real(sum) : Number::Integer(integers);
    case Kind::kCount:
      return Number::Integer(count);
    case Kind::kAvg:
      return Number::Real(sum / static_cast<double>(count));
    case Kind::kMin:
      return sorted.front();
    case Kind::kMax:
      return sorted.back();
    case Kind::kLast: {
      const auto* last = *std::max_element(points.begin(), points.end(), [](const auto* a, const auto* b) {
        return a->time != b->time ? a->time < b->time : Less(a->number, b->number);
      });
      return last->number;
    }
    default: {
      const double rank = function.percentile / 100 * static_cast<double>(count - 1);
      const auto below = static_cast<size_t>(std::floor(rank));
      const double part = rank - std::floor(rank);
      if (part == 0) return sorted[below];
      const double low = sorted[below].AsReal();
      const double high = sorted[below + 1].AsReal();
      return Number::Real(part >= 0.5 ? high - (high - low) * (1 - part) : low + (high - low) * part);
    }
  }
}

/// By value alone: an integer and a real number may be equal.
bool IsGreater(const Number& a, const Number& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() > b.integer();
  return a.AsReal() > b.AsReal();
}

bool Matches(const ReportInfo& info, const QueryFilter& filter, const ReportModel::Segments& segments) {
  for (const auto& [key, values] : filter.where) {
    if (values &&
        std::find(values->begin(), values->end(), segments[*info.KeyNumber(key)]) == values->end()) {
      return false;
    }
  }
  return true;
}

}  // namespace

void ReportModel::Write(const std::vector<Point>& points, bool add) {
  for (const Point& point : points) {
    const auto [at, is_new] = points_.try_emplace({point.metric, point.segments, point.time}, point);
    if (is_new) continue;
    Point& old = at->second;
    if (!add) {
      old = point;
      continue;
    }
    const bool real = !old.number.is_integer() || !point.number.is_integer();
    old.number = real ? Number::Real(old.number.AsReal() + point.number.AsReal())
                      : Number::Integer(old.number.integer() + point.number.integer());
    old.members.insert(old.members.end(), point.members.begin(), point.members.end());
    old.values.insert(old.values.end(), point.values.begin(), point.values.end());
  }
}

void ReportModel::Delete(const std::set<size_t>& metrics, int64_t from, int64_t to) {
  std::erase_if(points_, [&](const auto& entry) {
    return metrics.contains(entry.first.metric) && entry.first.time >= from && entry.first.time < to;
  });
}

void ReportModel::AddKey(const SegmentKey& key) {
  info_.keys.push_back(key);
  std::map<Name, Point> points;
  for (auto& [name, point] : points_) {
    Point extended = point;
    extended.segments.push_back(*key.default_value);
    const Name new_name{name.metric, extended.segments, name.time};
    points.emplace(new_name, std::move(extended));
  }
  points_ = std::move(points);
}

void ReportModel::Expire(int64_t before) { expired_before_ = std::max(expired_before_, before); }

std::vector<TimeValue> ReportModel::Points(const Query& query, const std::vector<Point>& points, int64_t from,
                                           int64_t to) const {
  const StepGrid grid =
      query.step ? *StepGrid::Make(*query.step, query.zone, from, to, 1'000'000) : StepGrid::Whole(from, to);
  std::vector<TimeValue> values;
  std::optional<Number> before;
  const MetricKind kind = info_.FindMetric(query.metrics[0].name)->kind;
  for (size_t step = 0; step < grid.size(); ++step) {
    std::vector<const Point*> of_step;
    for (const Point& point : points) {
      const bool behind_start = point.time >= grid.start(step);
      if (behind_start && (step + 1 == grid.size() || point.time < grid.start(step + 1)))
        of_step.push_back(&point);
    }
    auto value = Compute(kind, query.function, of_step);
    if (!value && query.fill == Fill::kZero) value = Number::Integer(0);
    if (!value && query.fill == Fill::kPrevious) value = before;
    if (value) values.emplace_back(grid.start(step), *value);
    before = value;
  }
  return values;
}

ReportModel::Groups ReportModel::GroupsOf(const Query& query, const QueryFilter& filter, int64_t from,
                                          int64_t to) const {
  const auto metric = static_cast<size_t>(info_.FindMetric(query.metrics[0].name) - info_.metrics.data());
  Groups groups;
  if (query.group_by.empty()) groups[{}];
  for (const auto& [name, point] : points_) {
    const bool wanted =
        name.metric == metric && name.time >= from && name.time < to && name.time >= expired_before_;
    if (!wanted || !Matches(info_, filter, name.segments)) continue;
    Segments group;
    for (const std::string& key : query.group_by) group.push_back(name.segments[*info_.KeyNumber(key)]);
    groups[group].push_back(point);
  }
  return groups;
}

std::vector<ResultSeries> ReportModel::Answer(const Query& query) const {
  const std::string& metric_name = query.metrics[0].name;
  const MetricKind kind = info_.FindMetric(metric_name)->kind;
  const auto shifted = [&](int64_t time) {
    return std::clamp<int64_t>(Shift(time, *query.compare_step, query.compare_sign, query.zone), 0,
                               kMaxTimeMs + 1);
  };
  std::vector<QueryFilter> filters = query.filters;
  if (filters.empty()) filters.emplace_back();
  std::vector<ResultSeries> answer;
  for (const QueryFilter& filter : filters) {
    Groups groups = GroupsOf(query, filter, query.from, query.to);
    Groups compared;
    if (query.compare_step) compared = GroupsOf(query, filter, shifted(query.from), shifted(query.to));
    for (const auto& [group, points] : compared) {
      if (!query.top) groups[group];
    }
    std::vector<std::pair<std::optional<Number>, ResultSeries>> of_filter;
    for (const auto& [group, points] : groups) {
      ResultSeries series{.metric = metric_name, .filter = filter.name};
      for (size_t i = 0; i < group.size(); ++i) series.segments.emplace_back(query.group_by[i], group[i]);
      series.points = Points(query, points, query.from, query.to);
      if (query.compare_step)
        series.compared = Points(query, compared[group], shifted(query.from), shifted(query.to));
      std::optional<Number> rank;
      if (query.top) {
        std::vector<const Point*> all;
        for (const Point& point : points) all.push_back(&point);
        rank = Compute(kind, query.top->by, all);
        if (!rank) continue;
      }
      of_filter.emplace_back(rank, std::move(series));
    }
    if (query.top) {
      std::stable_sort(of_filter.begin(), of_filter.end(),
                       [](const auto& a, const auto& b) { return IsGreater(*a.first, *b.first); });
      if (of_filter.size() > query.top->n) of_filter.resize(query.top->n);
    }
    for (auto& [rank, series] : of_filter) answer.push_back(std::move(series));
  }
  return answer;
}

}  // namespace kvstore::testing
