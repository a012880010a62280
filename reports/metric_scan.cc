#include "reports/metric_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "kvstore_api/call_scope.h"
#include "reports/chunk_number.h"
#include "reports/rollup_plan.h"
#include "reports/rollup_reader.h"
#include "reports/rollup_scan.h"
#include "reports/row_list.h"
#include "reports/row_merge.h"
#include "reports/rows.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

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
  SaltScan(const ScanContext& context, const Metric& metric, const RollupPlan& plan, const StepGrid& grid,
           TimeSpan span)
      : context_(context),
        metric_(metric),
        plan_(plan),
        span_(span),
        table_(grid, Keeps(context.query), context.use) {}

  absl::Status Run(uint8_t salt) {
    const auto begun = std::chrono::steady_clock::now();
    const absl::Status status = Scan(salt);
    FreeRow();
    cost_.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return status;
  }

  GroupTable& table() { return table_; }
  const QueryCost& cost() const { return cost_; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  absl::Status Scan(uint8_t salt) {
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
        FreeRow();
        if (!absl::IsUnavailable(failure)) return failure;
        AddMissing(first, std::string(failure.message()));
        return absl::OkStatus();
      };
    }
    const auto take = [this](StoredRow&& row) { return TakeRow(row); };
    const auto read = [this](uint64_t bytes) { return TakeRead(bytes); };
    const Metadata& metadata = context_.metadata;
    if (plan_.empty()) return ReadRows(metadata.store(), metadata.dataset(), wanted, take, failed, read);
    auto rows = KeysOf(metadata.store(), metadata.dataset(), wanted);
    if (absl::IsUnavailable(rows.status()) && failed) {
      return failed({salt, settings.id, metric_.id, wanted.first_period_s}, rows.status());
    }
    if (!rows.ok()) return rows.status();
    const auto rolled = std::stable_partition(rows->begin(), rows->end(), [&](const RowKey& row) {
      return plan_.For(row.period_start_s) != nullptr;
    });
    KV_ASSIGN_OR_RETURN(RollupScanResult result,
                        ReadRollups(metadata, plan_, std::span(rows->begin(), rolled), context_.query.partial,
                                    [this](const RolledRow& row) { return TakeRolledRow(row); }));
    cost_.bytes += result.bytes;
    KV_RETURN_IF_ERROR(context_.use.TakeRead(result.bytes));
    result.left.insert(result.left.end(), rolled, rows->end());
    return ReadListedRows(metadata.store(), metadata.dataset(), result.left, take, failed, read);
  }

  void AddMissing(const RowKey& row, const std::string& text) {
    missing_.push_back(
        fmt::format("metric '{}', from period {}: {}", metric_.name, row.period_start_s, text));
  }

  /// Counts bytes of a row that were read, and stay in memory until the row was taken.
  absl::Status TakeRead(uint64_t bytes) {
    KV_RETURN_IF_ERROR(context_.use.TakeRead(bytes));
    return TakeRowMemory(bytes);
  }

  absl::Status TakeRowMemory(uint64_t bytes) {
    row_memory_ += bytes;
    return context_.use.TakeMemory(bytes);
  }

  /// Called when nothing of a row is in memory any more.
  void FreeRow() { context_.use.FreeMemory(std::exchange(row_memory_, 0)); }

  absl::Status TakeRow(const StoredRow& row) {
    ++cost_.rows;
    uint64_t bytes = 0;
    for (const StoredChunk& chunk : row.chunks) bytes += chunk.bytes.size();
    cost_.bytes += bytes;
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
                        RowMerge::Make(live, static_cast<uint32_t>(context_.info.keys.size()), want,
                                       [this](uint64_t body_bytes) { return TakeRowMemory(body_bytes); }));
    for (uint32_t series = 0;; ++series) {
      if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
      KV_ASSIGN_OR_RETURN(const bool more, merge->Next());
      if (!more) break;
      if (!Matches(merge->segments())) continue;
      KV_RETURN_IF_ERROR(merge->Read(points_));
      KV_RETURN_IF_ERROR(table_.Add(matched_, group_, metric_.kind, points_, span_));
    }
    FreeRow();
    return absl::OkStatus();
  }

  absl::Status TakeRolledRow(const RolledRow& row) {
    ++cost_.rows;
    ++cost_.from_rollups;
    if (row.unchecked) {
      const uint64_t made_ms = TimeOfName(row.parts.begin()->second.made_of.name);
      AddMissing(row.key, fmt::format("{}; answered from a roll-up, which has what was written until {}",
                                      std::string(row.unchecked->message()),
                                      absl::FormatTime(absl::RFC3339_sec,
                                                       absl::FromUnixMillis(static_cast<int64_t>(made_ms)),
                                                       absl::UTCTimeZone())));
    }
    KV_ASSIGN_OR_RETURN(const auto reader,
                        RollupReader::Make(row.parts, metric_.kind, row.rollup->step_ms,
                                           static_cast<uint32_t>(context_.info.keys.size())));
    if (!context_.filters.MayMatch(reader->directory())) return absl::OkStatus();
    for (uint32_t series = 0;; ++series) {
      if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
      KV_ASSIGN_OR_RETURN(const bool more, reader->Next());
      if (!more) return absl::OkStatus();
      if (!Matches(reader->segments())) continue;
      KV_RETURN_IF_ERROR(reader->Read(summary_));
      if (metric_.kind == MetricKind::kValue) {
        KV_RETURN_IF_ERROR(table_.AddSummaries(matched_, group_, summary_.times, summary_.values, span_));
        continue;
      }
      // The union of the sketches of a step counts as any of them.
      points_.clear();
      std::swap(points_.times, summary_.times);
      std::swap(points_.sketches, summary_.sketches);
      KV_RETURN_IF_ERROR(table_.Add(matched_, group_, metric_.kind, points_, span_));
    }
  }

  /// Finds the filters that a series matches, and its group; false if it matches none.
  bool Matches(std::span<const uint32_t> segments) {
    matched_.clear();
    context_.filters.Match(segments, matched_);
    if (matched_.empty()) return false;
    context_.filters.Group(segments, group_);
    return true;
  }

  const ScanContext& context_;
  const Metric& metric_;
  const RollupPlan& plan_;
  const TimeSpan span_;
  GroupTable table_;
  QueryCost cost_;
  std::vector<std::string> missing_;
  std::vector<uint32_t> matched_;
  std::vector<uint32_t> group_;
  uint64_t row_memory_ = 0;  // that the row in work takes
  SeriesPoints points_;
  SeriesSummary summary_;
};

}  // namespace

absl::StatusOr<GroupTable> ScanMetric(const ScanContext& context, const Metric& metric, const StepGrid& grid,
                                      TimeSpan span, std::vector<QueryCost>& costs,
                                      std::vector<std::string>& missing) {
  const uint32_t salts = context.info.settings.salts;
  const RollupPlan plan(context.info, context.query, context.filters, metric, grid, span);
  std::vector<SaltScan> scans;
  scans.reserve(salts);
  for (uint32_t salt = 0; salt < salts; ++salt) scans.emplace_back(context, metric, plan, grid, span);
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
  for (uint32_t salt = 0; salt < salts; ++salt) {
    SaltScan& scan = scans[salt];
    KV_RETURN_IF_ERROR(merged.Merge(std::move(scan.table())));
    costs[salt] += scan.cost();
    missing.insert(missing.end(), scan.missing().begin(), scan.missing().end());
  }
  return merged;
}

}  // namespace kvstore::reports
