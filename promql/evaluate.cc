#include "promql/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace kvstore::promql {
namespace {

using reports::Function;
using reports::Query;
using reports::Reports;

constexpr std::string_view kNameLabel = "__name__";
/// How far back an instant query without a range looks, as Prometheus does.
constexpr int64_t kLookBackMs = 300'000;
constexpr int64_t kSecondMs = 1'000;
/// How many reports are asked for their keys or values where none is named.
constexpr size_t kMostReports = 200;

std::vector<std::string> KeysOf(const reports::ReportInfo& info) {
  std::vector<std::string> keys;
  for (const reports::SegmentKey& key : info.keys) keys.push_back(key.name);
  return keys;
}

/// Returns the function that a metric is asked for: to count a set is to say how many members it has.
absl::StatusOr<Function> FunctionFor(const reports::ReportInfo& info, const Selector& selector,
                                     const Function& asked) {
  const reports::Metric* const metric = info.FindMetric(selector.metric);
  if (metric == nullptr || metric->kind != reports::MetricKind::kDistinct) return asked;
  if (asked.kind == Function::Kind::kCount) return Function{.kind = Function::Kind::kDistinct};
  return absl::InvalidArgumentError(fmt::format(
      "query: the metric '{}' of report '{}' is of kind distinct: it is a set, and has no values. "
      "Ask how many different members it has, with count(REPORT:METRIC) or "
      "count_over_time(REPORT:METRIC[1d])",
      selector.metric, selector.report));
}

/// Returns the query without its times.
absl::StatusOr<Query> QueryFor(Reports& reports, const Selector& selector,
                               const std::optional<std::vector<std::string>>& by, const Function& function) {
  const auto info = reports.Info(selector.report, {selector.metric});
  if (!info.ok()) return info.status();
  const auto known = FunctionFor(*info, selector, function);
  if (!known.ok()) return known.status();
  Query query;
  query.report = selector.report;
  query.metrics = {{.name = selector.metric}};
  query.function = *known;
  if (!selector.where.empty()) query.filters = {{.name = "", .where = selector.where}};
  query.group_by = by ? *by : KeysOf(*info);
  return query;
}

/// Sets the times, and returns how much later than the beginning of its step a value is told.
absl::StatusOr<int64_t> SetTimes(const Selector& selector, const Times& times, Query& query) {
  const int64_t offset = selector.offset_ms;
  if (!times.step_ms) {
    const int64_t window = selector.range_ms.value_or(kLookBackMs);
    query.to = times.end_ms - offset;
    query.from = query.to - window;
    if (query.from < 0) query.from = 0;
    if (query.to <= query.from) return absl::InvalidArgumentError("time: is before 1970");
    return times.end_ms - query.from;
  }
  const int64_t step = *times.step_ms;
  if (step < kSecondMs || step % kSecondMs != 0)
    return absl::InvalidArgumentError("step: must be a whole number of seconds, at least 1");
  if (times.end_ms < times.start_ms) return absl::InvalidArgumentError("end: is before start");
  if (selector.range_ms && *selector.range_ms != step) {
    return absl::InvalidArgumentError(fmt::format(
        "query: the range is {} ms and the step {} ms; a report answers ranges that are as long as the "
        "step: [$__interval] in Grafana",
        *selector.range_ms, step));
  }
  if (offset % step != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "query: the offset is {} ms and the step {} ms; a report answers offsets that are a multiple "
        "of the step",
        offset, step));
  }
  // The steps of a report are multiples of their length, counted from 1970, as those that Grafana asks for.
  const int64_t first = (times.start_ms + step - 1) / step * step;
  const int64_t last = times.end_ms / step * step;
  query.from = first - step - offset;
  query.to = last - offset;
  if (query.from < 0)
    return absl::InvalidArgumentError("start: the step before it, less the offset, begins before 1970");
  query.step = reports::Step{.unit = reports::Step::Unit::kMilliseconds, .count = step};
  return step + offset;
}

Json LabelsOf(const reports::ResultSeries& series, const std::optional<std::string>& name) {
  Json labels = Json::object();
  if (name) labels[std::string(kNameLabel)] = *name;
  for (const auto& [key, value] : series.segments) labels[key] = value;
  return labels;
}

Json PointOf(int64_t time_ms, const reports::Number& value) {
  return Json::array({static_cast<double>(time_ms) / kSecondMs, ValueText(value)});
}

Json MatrixOf(Json series) { return {{"resultType", "matrix"}, {"result", std::move(series)}}; }

/// Returns the reports that are meant: the one that is named, or all that may be read.
absl::StatusOr<std::vector<std::string>> ReportsMeant(Reports& reports,
                                                      const std::optional<std::string>& report) {
  if (report) return std::vector<std::string>{*report};
  auto names = reports.List();
  if (!names.ok()) return names;
  if (names->size() > kMostReports) names->resize(kMostReports);
  return names;
}

}  // namespace

std::string ValueText(const reports::Number& number) {
  if (number.is_integer()) return fmt::format("{}", number.integer());
  const double value = number.real();
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

absl::StatusOr<Json> Evaluate(Reports& reports, const Expression& expression, const Times& times) {
  const Selector& selector = expression.selector;
  auto query = QueryFor(reports, selector, expression.by, expression.function);
  if (!query.ok()) return query.status();
  if (expression.top) query->top = reports::QueryTop{.n = *expression.top, .by = query->function};
  const auto later = SetTimes(selector, times, *query);
  if (!later.ok()) return later.status();
  // Between two steps there is none.
  if (query->to <= query->from) return MatrixOf(Json::array());
  const auto result = reports.Run(*query);
  if (!result.ok()) return result.status();
  // An aggregated series has no name any more, as in Prometheus.
  std::optional<std::string> name;
  if (!expression.by) name = selector.report + ":" + selector.metric;
  Json list = Json::array();
  for (const reports::ResultSeries& series : result->series) {
    if (series.points.empty()) continue;
    Json one = {{"metric", LabelsOf(series, name)}};
    if (times.step_ms) {
      Json values = Json::array();
      for (const auto& [time, value] : series.points) values.push_back(PointOf(time + *later, value));
      one["values"] = std::move(values);
    } else {
      one["value"] = PointOf(times.end_ms, series.points.front().second);
    }
    list.push_back(std::move(one));
  }
  if (times.step_ms) return MatrixOf(std::move(list));
  return Json{{"resultType", "vector"}, {"result", std::move(list)}};
}

absl::StatusOr<Json> SeriesNames(Reports& reports, const std::optional<std::string>& report, size_t most) {
  const auto meant = ReportsMeant(reports, report);
  if (!meant.ok()) return meant.status();
  Json names = Json::array();
  for (const std::string& one : *meant) {
    reports::MetricListing listing;
    bool more = true;
    while (more && names.size() < most) {
      const auto page = reports.ListMetrics(one, listing);
      if (!page.ok()) return page.status();
      for (const reports::Metric& metric : page->metrics) {
        if (names.size() < most) names.push_back(one + ":" + metric.name);
        listing.after = metric.name;
      }
      more = page->more && !page->metrics.empty();
    }
  }
  return names;
}

absl::Status CheckSeries(Reports& reports, const Selector& selector) {
  std::vector<std::string> metrics;
  if (!selector.metric.empty()) metrics.push_back(selector.metric);
  const auto info = reports.Info(selector.report, metrics);
  if (!info.ok()) return info.status();
  if (!metrics.empty() && info->metrics.empty()) {
    return absl::NotFoundError(
        fmt::format("match[]: the report '{}' has no metric '{}'", selector.report, selector.metric));
  }
  for (const auto& [key, values] : selector.where) {
    const bool known = std::any_of(info->keys.begin(), info->keys.end(),
                                   [&key = key](const reports::SegmentKey& one) { return one.name == key; });
    if (!known)
      return absl::InvalidArgumentError(fmt::format("match[]: '{}' is no segment key of the report", key));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> LabelNames(Reports& reports, const std::optional<std::string>& report) {
  const auto meant = ReportsMeant(reports, report);
  if (!meant.ok()) return meant.status();
  std::set<std::string> names = {std::string(kNameLabel)};
  for (const std::string& one : *meant) {
    const auto info = reports.Info(one, {});
    if (!info.ok()) return info.status();
    for (const reports::SegmentKey& key : info->keys) names.insert(key.name);
  }
  return Json(names);
}

absl::StatusOr<Json> LabelValues(Reports& reports, const std::optional<std::string>& report,
                                 const std::string& key) {
  const auto meant = ReportsMeant(reports, report);
  if (!meant.ok()) return meant.status();
  std::set<std::string> values;
  for (const std::string& one : *meant) {
    const auto described = reports.Describe(one, std::vector<std::string>());
    if (!described.ok()) return described.status();
    const auto found = described->segment_values.find(key);
    if (found != described->segment_values.end()) values.insert(found->second.begin(), found->second.end());
  }
  return Json(values);
}

absl::StatusOr<Json> SeriesOf(Reports& reports, const Selector& selector, const Times& times) {
  if (times.end_ms < times.start_ms) return absl::InvalidArgumentError("end: is before start");
  auto query = QueryFor(reports, selector, std::nullopt, {.kind = Function::Kind::kCount});
  if (!query.ok()) return query.status();
  query->from = std::max<int64_t>(times.start_ms, 0);
  // The span of a report's query ends before `to`, and that of Prometheus has its end in it.
  query->to = times.end_ms + 1;
  const auto result = reports.Run(*query);
  if (!result.ok()) return result.status();
  Json list = Json::array();
  for (const reports::ResultSeries& series : result->series) {
    if (!series.points.empty()) list.push_back(LabelsOf(series, selector.report + ":" + selector.metric));
  }
  return list;
}

}  // namespace kvstore::promql
