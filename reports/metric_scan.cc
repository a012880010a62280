#include "reports/metric_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "reports/row_merge.h"
#include "reports/rows.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Series between two looks at the caller's deadline.
constexpr uint32_t kSeriesOfLook = 1'024;

/// What the aggregates of a query need to keep.
GroupTable::Keep Keeps(const Query& query) {
  const auto is_percentile = [](const Function& function) {
    return function.kind == Function::Kind::kPercentile;
  };
  return {.values = is_percentile(query.function),
          .whole = query.top.has_value(),
          .whole_values = query.top && is_percentile(query.top->by)};
}

/// One salt of a metric, by one thread.
class SaltScan {
 public:
  SaltScan(const ScanContext& context, const Metric& metric, const StepGrid& grid, TimeSpan span)
      : context_(context), metric_(metric), span_(span), table_(grid, Keeps(context.query), context.use) {}

  absl::Status Run(uint8_t salt) {
    const ReportSettings& settings = context_.info.settings;
    const RowsWanted wanted{.salt = salt,
                            .report = settings.id,
                            .metric = metric_.id,
                            .first_period_s = PeriodOf(span_.from, settings.period_s),
                            .last_period_s = PeriodOf(span_.to - 1, settings.period_s),
                            .period_s = settings.period_s};
    TakeFailure failed;
    if (context_.query.partial) {
      failed = [this](const RowKey& first, const absl::Status& failure) {
        if (!absl::IsUnavailable(failure)) return failure;
        missing_.push_back(fmt::format("metric '{}', from period {}: {}", metric_.name, first.period_start_s,
                                       std::string(failure.message())));
        return absl::OkStatus();
      };
    }
    return ReadRows(
        context_.metadata.store(), context_.metadata.dataset(), wanted,
        [this](StoredRow&& row) { return TakeRow(row); }, failed);
  }

  GroupTable& table() { return table_; }
  const QueryCost& cost() const { return cost_; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  absl::Status TakeRow(const StoredRow& row) {
    ++cost_.rows;
    uint64_t bytes = 0;
    for (const StoredChunk& chunk : row.chunks) bytes += chunk.bytes.size();
    cost_.bytes += bytes;
    KV_RETURN_IF_ERROR(context_.use.TakeRead(bytes));
    KV_ASSIGN_OR_RETURN(const std::vector<LiveChunk> live, LiveChunks(row));
    cost_.chunks_skipped += row.chunks.size() - live.size();
    if (!live.empty() && live.front().chunk.directory().kind != metric_.kind) {
      return absl::DataLossError(
          fmt::format("metric '{}' is of kind {}, and a row of it, of period {}, has chunks of another kind",
                      metric_.name, Name(metric_.kind), row.key.period_start_s));
    }
    const auto want = [this](const ChunkDirectory& directory) {
      const bool in_time = directory.min_time < span_.to && directory.max_time >= span_.from;
      const bool wanted = in_time && context_.filters.MayMatch(directory);
      ++(wanted ? cost_.chunks : cost_.chunks_skipped);
      return wanted;
    };
    KV_ASSIGN_OR_RETURN(const auto merge,
                        RowMerge::Make(live, static_cast<uint32_t>(context_.info.keys.size()), want));
    for (uint32_t series = 0;; ++series) {
      if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
      KV_ASSIGN_OR_RETURN(const bool more, merge->Next());
      if (!more) return absl::OkStatus();
      matched_.clear();
      context_.filters.Match(merge->segments(), matched_);
      if (matched_.empty()) continue;
      KV_RETURN_IF_ERROR(merge->Read(points_));
      context_.filters.Group(merge->segments(), group_);
      KV_RETURN_IF_ERROR(table_.Add(matched_, group_, metric_.kind, points_, span_));
    }
  }

  const ScanContext& context_;
  const Metric& metric_;
  const TimeSpan span_;
  GroupTable table_;
  QueryCost cost_;
  std::vector<std::string> missing_;
  std::vector<uint32_t> matched_;
  std::vector<uint32_t> group_;
  SeriesPoints points_;
};

}  // namespace

absl::StatusOr<GroupTable> ScanMetric(const ScanContext& context, const Metric& metric, const StepGrid& grid,
                                      TimeSpan span, QueryCost& cost, std::vector<std::string>& missing) {
  const uint32_t salts = context.info.settings.salts;
  std::vector<SaltScan> scans;
  scans.reserve(salts);
  for (uint32_t salt = 0; salt < salts; ++salt) scans.emplace_back(context, metric, grid, span);
  std::vector<absl::Status> statuses(salts, absl::OkStatus());
  std::atomic<uint32_t> next{0};
  std::atomic<bool> failed{false};
  // The threads are within the limits of the call that they work for.
  const CallLimits limits = CallScope::Current();
  const auto work = [&] {
    const CallScope scope(limits);
    for (uint32_t salt = next++; salt < salts && !failed; salt = next++) {
      statuses[salt] = scans[salt].Run(static_cast<uint8_t>(salt));
      if (!statuses[salt].ok()) failed = true;
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min<size_t>(salts, context.query.limits.threads);
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) KV_RETURN_IF_ERROR(status);
  GroupTable merged(grid, Keeps(context.query), context.use);
  for (SaltScan& scan : scans) {
    KV_RETURN_IF_ERROR(merged.Merge(std::move(scan.table())));
    cost.rows += scan.cost().rows;
    cost.chunks += scan.cost().chunks;
    cost.chunks_skipped += scan.cost().chunks_skipped;
    cost.bytes += scan.cost().bytes;
    missing.insert(missing.end(), scan.missing().begin(), scan.missing().end());
  }
  return merged;
}

}  // namespace kvstore::reports
