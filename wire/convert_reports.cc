#include "wire/convert_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "wire/convert.h"
#include "wire/number_columns.h"
#include "wire/unknown_number.h"

namespace kvstore::wire {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): one side of every conversion

/// Bounds of the end of an answer, which is one message: how many of the things that a query could not read
/// it names, how many bytes each name has, and of how many parts it tells the cost.
constexpr size_t kMaxMissing = 1'000;
constexpr size_t kMaxMissingBytes = 2'000;
constexpr size_t kMaxParts = 64'000;

template <typename Strings>
std::vector<std::string> ToVector(const Strings& list) {
  return {list.begin(), list.end()};
}

// ---- steps and functions ----

void StepToWire(const Step& step, v1::Step& message) {
  // The message's units are numbered from 1.
  message.set_unit(static_cast<v1::Step::Unit>(static_cast<int>(step.unit) + 1));
  message.set_count(step.count);
}

absl::StatusOr<Step> StepFromWire(const v1::Step& message, std::string_view field) {
  Step step{.count = message.count()};
  switch (message.unit()) {
    case v1::Step::UNIT_UNSPECIFIED:
    case v1::Step::UNIT_MILLISECONDS:
      step.unit = Step::Unit::kMilliseconds;
      break;
    case v1::Step::UNIT_DAYS:
      step.unit = Step::Unit::kDays;
      break;
    case v1::Step::UNIT_WEEKS:
      step.unit = Step::Unit::kWeeks;
      break;
    case v1::Step::UNIT_MONTHS:
      step.unit = Step::Unit::kMonths;
      break;
    default:
      return UnknownNumberError(fmt::format("{}.unit", field), message.unit());
  }
  if (const absl::Status status = CheckStep(step); !status.ok())
    return absl::InvalidArgumentError(fmt::format("{}: {}", field, std::string(status.message())));
  return step;
}

void FunctionToWire(const Function& function, v1::Function& message) {
  message.set_kind(static_cast<v1::Function::Kind>(static_cast<int>(function.kind) + 1));
  if (function.kind == Function::Kind::kPercentile) message.set_percentile(function.percentile);
}

absl::StatusOr<Function> FunctionFromWire(const v1::Function& message, std::string_view field) {
  Function function;
  if (message.kind() == v1::Function::KIND_UNSPECIFIED) return function;
  if (message.kind() < v1::Function::KIND_SUM || message.kind() > v1::Function::KIND_DISTINCT)
    return UnknownNumberError(fmt::format("{}.kind", field), message.kind());
  function.kind = static_cast<Function::Kind>(static_cast<int>(message.kind()) - 1);
  if (function.kind != Function::Kind::kPercentile) return function;
  const double percentile = message.percentile();
  if (!(percentile >= 0 && percentile <= 100))
    return absl::InvalidArgumentError(fmt::format("{}.percentile: must be from 0 to 100", field));
  function.percentile = percentile;
  return function;
}

// ---- filters ----

void FilterToWire(const QueryFilter& filter, v1::QueryFilter& message) {
  message.set_name(filter.name);
  for (const auto& [key, values] : filter.where) {
    v1::QueryFilter::Match& match = *message.add_where();
    match.set_key(key);
    match.set_any(!values.has_value());
    if (!values) continue;
    for (const std::string& value : *values) match.add_values(value);
  }
}

absl::StatusOr<QueryFilter> FilterFromWire(const v1::QueryFilter& message, int index) {
  QueryFilter filter{.name = message.name()};
  for (const v1::QueryFilter::Match& match : message.where()) {
    auto [at, added] = filter.where.try_emplace(match.key());
    if (!added) {
      return absl::InvalidArgumentError(
          fmt::format("filters[{}].where: key '{}' is named twice", index, match.key()));
    }
    if (match.any() && match.values_size() > 0) {
      return absl::InvalidArgumentError(
          fmt::format("filters[{}].where: key '{}' has values, and any matches", index, match.key()));
    }
    if (!match.any()) at->second = ToVector(match.values());
  }
  return filter;
}

// ---- answers ----

void PointsToWire(const std::vector<TimeValue>& points, v1::SeriesPoints& message) {
  message.mutable_times()->Reserve(static_cast<int>(points.size()));
  for (const auto& [time, value] : points) {
    message.add_times(time);
    AddNumber(value, *message.mutable_values());
  }
}

absl::StatusOr<std::vector<TimeValue>> PointsFromWire(const v1::SeriesPoints& message,
                                                      std::string_view field) {
  const auto count = static_cast<size_t>(message.times_size());
  const auto numbers = NumbersOf(message.values(), count, field);
  if (!numbers.ok()) return numbers.status();
  std::vector<TimeValue> points;
  points.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t time = message.times(static_cast<int>(i));
    if (!points.empty() && points.back().first >= time)
      return absl::InvalidArgumentError(fmt::format("{}.times: not ascending, at {}", field, i));
    points.emplace_back(time, (*numbers)[i]);
  }
  return points;
}

void CostToWire(const QueryCost& cost, v1::QueryCost& message) {
  message.set_rows(cost.rows);
  message.set_chunks(cost.chunks);
  message.set_chunks_skipped(cost.chunks_skipped);
  message.set_bytes(cost.bytes);
  message.set_from_rollups(cost.from_rollups);
  message.set_ms(cost.ms);
}

QueryCost CostFromWire(const v1::QueryCost& message) {
  return {.rows = message.rows(),
          .chunks = message.chunks(),
          .chunks_skipped = message.chunks_skipped(),
          .bytes = message.bytes(),
          .from_rollups = message.from_rollups(),
          .ms = message.ms()};
}

}  // namespace

// ---- a report ----

void ToWire(const SegmentKey& key, v1::SegmentKey& message) {
  message.set_name(key.name);
  if (key.default_value) message.set_default_value(*key.default_value);
}

SegmentKey FromWire(const v1::SegmentKey& message) {
  SegmentKey key{.name = message.name()};
  if (message.has_default_value()) key.default_value = message.default_value();
  return key;
}

void ToWire(const Metric& metric, v1::Metric& message) {
  message.set_name(metric.name);
  // The numbers are those of the library, which are stored and never change.
  message.set_kind(static_cast<v1::MetricKind>(metric.kind));
  message.set_id(metric.id);
}

absl::StatusOr<Metric> FromWire(const v1::Metric& message) {
  Metric metric{.id = message.id(), .name = message.name()};
  switch (message.kind()) {
    case v1::METRIC_KIND_UNSPECIFIED:
      return metric;
    case v1::METRIC_KIND_VALUE:
    case v1::METRIC_KIND_DISTINCT:
    case v1::METRIC_KIND_DISTRIBUTION:
      metric.kind = static_cast<MetricKind>(message.kind());
      return metric;
    default:
      return UnknownNumberError("metrics.kind", message.kind());
  }
}

void ToWire(const Rollup& rollup, v1::Rollup& message) {
  for (const std::string& key : rollup.keys) message.add_keys(key);
  message.set_step_ms(rollup.step_ms);
  message.set_id(rollup.id);
}

Rollup FromWire(const v1::Rollup& message) {
  return {.keys = ToVector(message.keys()), .step_ms = message.step_ms(), .id = message.id()};
}

void ToWireWithoutMetrics(const ReportInfo& info, v1::Report& message) {
  message.set_name(info.name);
  message.set_id(info.settings.id);
  message.set_resolution_ms(info.settings.resolution_ms);
  message.set_period_s(info.settings.period_s);
  message.set_salts(info.settings.salts);
  message.set_retention_ms(info.settings.retention_ms);
  for (const SegmentKey& key : info.keys) ToWire(key, *message.add_keys());
  for (const Rollup& rollup : info.rollups) ToWire(rollup, *message.add_rollups());
}

void ToWire(const ReportInfo& info, v1::Report& message) {
  ToWireWithoutMetrics(info, message);
  for (const Metric& metric : info.metrics) ToWire(metric, *message.add_metrics());
}

absl::StatusOr<ReportInfo> FromWire(const v1::Report& message) {
  ReportInfo info{.name = message.name()};
  info.settings.id = message.id();
  if (message.has_resolution_ms()) info.settings.resolution_ms = message.resolution_ms();
  if (message.has_period_s()) info.settings.period_s = message.period_s();
  if (message.has_salts()) info.settings.salts = message.salts();
  info.settings.retention_ms = message.retention_ms();
  for (const v1::SegmentKey& key : message.keys()) info.keys.push_back(FromWire(key));
  for (const v1::Metric& one : message.metrics()) {
    auto metric = FromWire(one);
    if (!metric.ok()) return metric.status();
    info.metrics.push_back(*std::move(metric));
  }
  for (const v1::Rollup& rollup : message.rollups()) info.rollups.push_back(FromWire(rollup));
  return info;
}

void ToWire(const ReportChange& change, v1::AlterReportRequest& message) {
  if (change.add_key) ToWire(*change.add_key, *message.mutable_add_key());
  for (const Metric& metric : change.add_metrics) ToWire(metric, *message.add_add_metrics());
  if (change.retention_ms) message.set_retention_ms(*change.retention_ms);
  if (!change.rollups) return;
  v1::Rollups& rollups = *message.mutable_rollups();
  for (const Rollup& rollup : *change.rollups) ToWire(rollup, *rollups.add_rollups());
}

absl::StatusOr<ReportChange> FromWire(const v1::AlterReportRequest& message) {
  ReportChange change;
  if (message.has_add_key()) change.add_key = FromWire(message.add_key());
  for (const v1::Metric& one : message.add_metrics()) {
    auto metric = FromWire(one);
    if (!metric.ok()) return metric.status();
    change.add_metrics.push_back(*std::move(metric));
  }
  if (message.has_retention_ms()) change.retention_ms = message.retention_ms();
  if (message.has_rollups()) {
    change.rollups.emplace();
    for (const v1::Rollup& rollup : message.rollups().rollups()) change.rollups->push_back(FromWire(rollup));
  }
  return change;
}

// ---- queries ----

void ToWire(const Query& query, v1::QueryReportRequest& message) {
  message.set_report(query.report);
  for (const QueryMetric& metric : query.metrics) {
    v1::QueryMetric& one = *message.add_metrics();
    one.set_name(metric.name);
    one.set_expression(metric.expression);
  }
  message.set_from(query.from);
  message.set_to(query.to);
  if (query.step) StepToWire(*query.step, *message.mutable_step());
  message.set_time_zone(query.zone.name());
  for (const QueryFilter& filter : query.filters) FilterToWire(filter, *message.add_filters());
  for (const std::string& key : query.group_by) message.add_group_by(key);
  FunctionToWire(query.function, *message.mutable_function());
  if (query.top) {
    // There are never so many series that a greater number would say anything else.
    message.mutable_top()->set_n(static_cast<uint32_t>(std::min<size_t>(query.top->n, UINT32_MAX)));
    FunctionToWire(query.top->by, *message.mutable_top()->mutable_by());
  }
  message.set_fill(static_cast<v1::Fill>(static_cast<int>(query.fill) + 1));
  if (query.compare_step) StepToWire(*query.compare_step, *message.mutable_compare());
  message.set_compare_later(query.compare_sign > 0);
  message.set_partial(query.partial);
  message.set_explain(query.explain);
  message.set_without_rollups(!query.use_rollups);
}

namespace {

absl::StatusOr<QueryTop> TopFromWire(const v1::QueryTop& message, const Function& function) {
  QueryTop top{.n = message.n(), .by = function};
  if (!message.has_by()) return top;
  const auto by = FunctionFromWire(message.by(), "top.by");
  if (!by.ok()) return by.status();
  top.by = *by;
  return top;
}

absl::StatusOr<std::optional<Step>> OptionalStep(bool given, const v1::Step& message,
                                                 std::string_view field) {
  if (!given) return std::nullopt;
  const auto step = StepFromWire(message, field);
  if (!step.ok()) return step.status();
  return *step;
}

}  // namespace

absl::StatusOr<Query> FromWire(const v1::QueryReportRequest& message) {
  Query query;
  query.report = message.report();
  for (const v1::QueryMetric& metric : message.metrics())
    query.metrics.push_back({metric.name(), metric.expression()});
  query.from = message.from();
  query.to = message.to();
  const auto step = OptionalStep(message.has_step(), message.step(), "step");
  if (!step.ok()) return step.status();
  query.step = *step;
  if (!message.time_zone().empty()) {
    const auto zone = LoadZone(message.time_zone());
    if (!zone.ok()) return zone.status();
    query.zone = *zone;
  }
  for (int i = 0; i < message.filters_size(); ++i) {
    auto filter = FilterFromWire(message.filters(i), i);
    if (!filter.ok()) return filter.status();
    query.filters.push_back(*std::move(filter));
  }
  query.group_by = ToVector(message.group_by());
  const auto function = FunctionFromWire(message.function(), "function");
  if (!function.ok()) return function.status();
  query.function = *function;
  if (message.has_top()) {
    const auto top = TopFromWire(message.top(), query.function);
    if (!top.ok()) return top.status();
    query.top = *top;
  }
  if (message.fill() < v1::FILL_UNSPECIFIED || message.fill() > v1::FILL_PREVIOUS)
    return UnknownNumberError("fill", message.fill());
  if (message.fill() != v1::FILL_UNSPECIFIED)
    query.fill = static_cast<Fill>(static_cast<int>(message.fill()) - 1);
  const auto compare = OptionalStep(message.has_compare(), message.compare(), "compare");
  if (!compare.ok()) return compare.status();
  query.compare_step = *compare;
  query.compare_sign = message.compare_later() ? 1 : -1;
  query.partial = message.partial();
  query.explain = message.explain();
  query.use_rollups = !message.without_rollups();
  return query;
}

void ToWire(const ResultSeries& series, v1::QueryReportResponse::Series& message) {
  message.set_metric(series.metric);
  message.set_filter(series.filter);
  for (const auto& [key, value] : series.segments) message.add_segments(value);
  PointsToWire(series.points, *message.mutable_points());
  if (series.compared) PointsToWire(*series.compared, *message.mutable_compared());
}

absl::StatusOr<ResultSeries> FromWire(v1::QueryReportResponse::Series& message, const Query& query) {
  ResultSeries series;
  series.metric = std::move(*message.mutable_metric());
  series.filter = std::move(*message.mutable_filter());
  if (static_cast<size_t>(message.segments_size()) != query.group_by.size()) {
    return absl::InvalidArgumentError(fmt::format("series.segments: {} values for {} keys",
                                                  message.segments_size(), query.group_by.size()));
  }
  for (int i = 0; i < message.segments_size(); ++i) {
    series.segments.emplace_back(query.group_by[static_cast<size_t>(i)],
                                 std::move(*message.mutable_segments(i)));
  }
  auto points = PointsFromWire(message.points(), "series.points");
  if (!points.ok()) return points.status();
  series.points = *std::move(points);
  if (message.has_compared() != query.compare_step.has_value())
    return absl::InvalidArgumentError("series.compared: is there only for a query that compares");
  if (message.has_compared()) {
    auto compared = PointsFromWire(message.compared(), "series.compared");
    if (!compared.ok()) return compared.status();
    series.compared = *std::move(compared);
  }
  return series;
}

void ToWire(const QueryResult& result, v1::QueryReportResponse::End& message) {
  CostToWire(result.cost, *message.mutable_cost());
  for (size_t i = 0; i < std::min(result.missing.size(), kMaxMissing); ++i)
    message.add_missing(AsciiOf(std::string_view(result.missing[i]).substr(0, kMaxMissingBytes)));
  if (result.missing.size() > kMaxMissing)
    message.add_missing(fmt::format("and {} more", result.missing.size() - kMaxMissing));
  for (size_t i = 0; i < std::min(result.parts.size(), kMaxParts); ++i) {
    const PartCost& part = result.parts[i];
    v1::QueryReportResponse::Part& one = *message.add_parts();
    one.set_metric(part.metric);
    one.set_salt(part.salt);
    CostToWire(part.cost, *one.mutable_cost());
  }
}

void FromWire(const v1::QueryReportResponse::End& message, QueryResult& result) {
  result.cost = CostFromWire(message.cost());
  result.missing = ToVector(message.missing());
  for (const v1::QueryReportResponse::Part& part : message.parts())
    result.parts.push_back({part.metric(), part.salt(), CostFromWire(part.cost())});
}

// ---- upkeep ----

void ToWire(const CompactionResult& result, v1::CompactReportResponse::Result& message) {
  message.set_rows(result.rows);
  message.set_chunks_merged(result.chunks_merged);
  message.set_chunks_written(result.chunks_written);
  message.set_rows_expired(result.rows_expired);
  message.set_bytes_before(result.bytes_before);
  message.set_bytes_after(result.bytes_after);
}

CompactionResult FromWire(const v1::CompactReportResponse::Result& message) {
  return {.rows = message.rows(),
          .chunks_merged = message.chunks_merged(),
          .chunks_written = message.chunks_written(),
          .rows_expired = message.rows_expired(),
          .bytes_before = message.bytes_before(),
          .bytes_after = message.bytes_after()};
}

void ToWire(const RollupResult& result, v1::MakeRollupsResponse::Result& message) {
  message.set_rows(result.rows);
  message.set_rows_current(result.rows_current);
  message.set_rows_written(result.rows_written);
  message.set_bytes_written(result.bytes_written);
}

RollupResult FromWire(const v1::MakeRollupsResponse::Result& message) {
  return {.rows = message.rows(),
          .rows_current = message.rows_current(),
          .rows_written = message.rows_written(),
          .bytes_written = message.bytes_written()};
}

}  // namespace kvstore::wire
