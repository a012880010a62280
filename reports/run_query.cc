#include "reports/run_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "reports/answer.h"
#include "reports/expression.h"
#include "reports/metric_scan.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kMaxMetrics = 1'000;

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

absl::Status CheckQuery(const Query& query) {
  if (query.metrics.empty() || query.metrics.size() > kMaxMetrics) {
    return absl::InvalidArgumentError(
        fmt::format("metrics: {} are asked for; there must be 1 to {}", query.metrics.size(), kMaxMetrics));
  }
  if (query.from < 0 || query.to > kMaxTimeMs + 1 || query.from > query.to) {
    return absl::InvalidArgumentError("from, to: must be times from 1970 to 9999, 'from' no later than 'to'");
  }
  if (query.top && query.top->n == 0) return absl::InvalidArgumentError("top: n must be at least 1");
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
                                     QueryResult& result) {
  MetricTables tables;
  const TimeSpan retained = Retained(context.info.settings, span);
  for (const Metric& metric : context.info.metrics) {
    if (retained.from >= retained.to) {
      tables.emplace(metric.name, GroupTable(grid, {}, context.use));
      continue;
    }
    KV_ASSIGN_OR_RETURN(GroupTable table,
                        ScanMetric(context, metric, grid, retained, result.cost, result.missing));
    tables.emplace(metric.name, std::move(table));
  }
  return tables;
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
  const TimeSpan span{query.from, query.to};
  KV_ASSIGN_OR_RETURN(const StepGrid grid, GridOf(query, span));
  KV_ASSIGN_OR_RETURN(const MetricTables tables, ScanAll(context, grid, span, result));
  Answer answer(metadata, info, query, filters);
  for (size_t i = 0; i < expressions.size(); ++i) {
    KV_RETURN_IF_ERROR(answer.Add(query.metrics[i].name, expressions[i], tables, grid));
  }
  if (query.compare_step) {
    const auto shifted = [&](int64_t time) {
      return std::clamp<int64_t>(Shift(time, *query.compare_step, query.compare_sign, query.zone), 0,
                                 kMaxTimeMs + 1);
    };
    const TimeSpan compared{shifted(query.from), shifted(query.to)};
    KV_ASSIGN_OR_RETURN(const StepGrid compared_grid, GridOf(query, compared));
    KV_ASSIGN_OR_RETURN(const MetricTables compared_tables,
                        ScanAll(context, compared_grid, compared, result));
    KV_RETURN_IF_ERROR(answer.Compare(expressions, compared_tables, compared_grid));
  }
  result.series = std::move(answer).Take();
  result.cost.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
  return result;
}

}  // namespace kvstore::reports
