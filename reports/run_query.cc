#include "reports/run_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "reports/answer.h"
#include "reports/expression.h"
#include "reports/metric_scan.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kMaxMetrics = 1'000;
constexpr size_t kMaxTop = 100'000;

absl::StatusOr<std::vector<Expression>> Expressions(const Query& query) {
  std::vector<Expression> expressions;
  for (const QueryMetric& metric : query.metrics) {
    if (metric.expression.empty()) {
      expressions.push_back(Expression::Of(metric.name));
      continue;
    }
    KV_ASSIGN_OR_RETURN(Expression expression, Expression::Parse(metric.expression));
    if (expression.metrics().empty()) {
      return absl::InvalidArgumentError(fmt::format("expression: '{}' names no metric", metric.expression));
    }
    expressions.push_back(std::move(expression));
  }
  return expressions;
}

absl::Status CheckLength(std::string_view field, const std::string& name) {
  if (name.size() <= kMaxMetricNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: has {} bytes, the limit is {}", field, name.size(), kMaxMetricNameBytes));
}

absl::Status CheckQuery(const Query& query) {
  if (query.metrics.empty() || query.metrics.size() > kMaxMetrics) {
    return absl::InvalidArgumentError(
        fmt::format("metrics: {} are asked for; there must be 1 to {}", query.metrics.size(), kMaxMetrics));
  }
  if (query.from < 0 || query.to > kMaxTimeMs + 1 || query.from > query.to) {
    return absl::InvalidArgumentError("from, to: must be times from 1970 to 9999, 'from' no later than 'to'");
  }
  if (query.top && (query.top->n == 0 || query.top->n > kMaxTop)) {
    return absl::InvalidArgumentError(fmt::format("top: n must be from 1 to {}", kMaxTop));
  }
  // Each series of the answer has these names.
  for (size_t i = 0; i < query.metrics.size(); ++i) {
    KV_RETURN_IF_ERROR(CheckLength(fmt::format("metrics[{}].name", i), query.metrics[i].name));
  }
  for (size_t i = 0; i < query.filters.size(); ++i) {
    KV_RETURN_IF_ERROR(CheckLength(fmt::format("filters[{}].name", i), query.filters[i].name));
  }
  return absl::OkStatus();
}

absl::Status CheckMetrics(const ReportInfo& info, const std::vector<Expression>& expressions,
                          const Query& query) {
  for (const Expression& expression : expressions) {
    for (const std::string& name : expression.metrics()) {
      const Metric* metric = info.FindMetric(name);
      if (metric == nullptr) {
        return absl::NotFoundError(fmt::format("metrics: report '{}' has no metric '{}'", info.name, name));
      }
      KV_RETURN_IF_ERROR(CheckFunction(query.function, *metric));
      if (query.top) KV_RETURN_IF_ERROR(CheckFunction(query.top->by, *metric));
    }
  }
  return absl::OkStatus();
}

/// Without the points that are past the report's retention.
TimeSpan Retained(const ReportSettings& settings, TimeSpan span) {
  if (settings.retention_ms == 0) return span;
  const uint64_t now = WallClockMs();
  if (now > settings.retention_ms)
    span.from = std::max(span.from, static_cast<int64_t>(now - settings.retention_ms));
  return span;
}

/// The groups of every metric that the expressions name.
absl::StatusOr<MetricTables> ScanAll(const ScanContext& context, const StepGrid& grid, TimeSpan span,
                                     MetricCosts& costs, std::vector<std::string>& missing) {
  MetricTables tables;
  const TimeSpan retained = Retained(context.info.settings, span);
  const std::vector<Metric>& metrics = context.info.metrics;
  if (retained.from >= retained.to) {
    for (const Metric& metric : metrics) tables.emplace(metric.name, GroupTable(grid, {}, context.use));
    return tables;
  }
  KV_ASSIGN_OR_RETURN(std::vector<GroupTable> scanned, ScanMetrics(context, grid, retained, costs, missing));
  for (size_t i = 0; i < metrics.size(); ++i) tables.emplace(metrics[i].name, std::move(scanned[i]));
  return tables;
}

void AddCosts(const ReportInfo& info, const MetricCosts& costs, bool explain, QueryResult& result) {
  for (size_t i = 0; i < costs.size(); ++i) {
    for (uint32_t salt = 0; salt < costs[i].size(); ++salt) {
      result.cost += costs[i][salt];
      if (explain) result.parts.push_back({info.metrics[i].name, salt, costs[i][salt]});
    }
  }
}

absl::StatusOr<StepGrid> GridOf(const Query& query, TimeSpan span) {
  if (!query.step) return StepGrid::Whole(span.from, span.to);
  return StepGrid::Make(*query.step, query.zone, span.from, span.to, query.limits.max_steps);
}

}  // namespace

absl::StatusOr<QueryResult> RunQuery(const Metadata& metadata, const Query& query) {
  const auto begun = std::chrono::steady_clock::now();
  KV_RETURN_IF_ERROR(CheckQuery(query));
  KV_ASSIGN_OR_RETURN(const std::vector<Expression> expressions, Expressions(query));
  std::vector<std::string> names;
  for (const Expression& expression : expressions) {
    names.insert(names.end(), expression.metrics().begin(), expression.metrics().end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMaxMetrics) {
    return absl::InvalidArgumentError(
        fmt::format("metrics: the expressions name {} metrics, the limit is {}", names.size(), kMaxMetrics));
  }
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(query.report, names));
  KV_RETURN_IF_ERROR(CheckMetrics(info, expressions, query));
  KV_ASSIGN_OR_RETURN(const FilterSet filters, FilterSet::Make(metadata, info, query));
  QueryUse use;
  use.max_memory_bytes = query.limits.max_memory_bytes;
  use.max_read_bytes = query.limits.max_bytes;
  use.max_groups = query.limits.max_groups;
  const ScanContext context{metadata, info, query, filters, use};
  QueryResult result;
  MetricCosts costs(info.metrics.size(), std::vector<QueryCost>(info.settings.salts));
  const TimeSpan span{query.from, query.to};
  KV_ASSIGN_OR_RETURN(const StepGrid grid, GridOf(query, span));
  KV_ASSIGN_OR_RETURN(const MetricTables tables, ScanAll(context, grid, span, costs, result.missing));
  StepGrid compared_grid;
  std::optional<MetricTables> compared_tables;
  if (query.compare_step) {
    const auto shifted = [&](int64_t time) {
      return std::clamp<int64_t>(Shift(time, *query.compare_step, query.compare_sign, query.zone), 0,
                                 kMaxTimeMs + 1);
    };
    const TimeSpan compared{shifted(query.from), shifted(query.to)};
    KV_ASSIGN_OR_RETURN(compared_grid, GridOf(query, compared));
    KV_ASSIGN_OR_RETURN(compared_tables, ScanAll(context, compared_grid, compared, costs, result.missing));
  }
  Answer answer(metadata, info, query, filters, use);
  for (size_t i = 0; i < expressions.size(); ++i) {
    KV_RETURN_IF_ERROR(answer.Add(query.metrics[i].name, expressions[i], tables, grid,
                                  compared_tables ? &*compared_tables : nullptr));
  }
  if (compared_tables) KV_RETURN_IF_ERROR(answer.Compare(expressions, *compared_tables, compared_grid));
  result.series = std::move(answer).Take();
  AddCosts(info, costs, query.explain, result);
  result.cost.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

}  // namespace kvstore::reports
