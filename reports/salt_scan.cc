#include "reports/salt_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/time.h"
#include "kvstore_api/call_scope.h"
#include "reports/chunk_number.h"
#include "reports/row_list.h"
#include "reports/status_macros.h"

namespace kvstore::reports {

GroupTable::Keep KeepsOf(const Query& query) {
  const auto is_percentile = [](const Function& function) {
    return function.kind == Function::Kind::kPercentile;
  };
  const auto is_sum = [](const Function& function) {
    using Kind = Function::Kind;
    return function.kind == Kind::kSum || function.kind == Kind::kCount || function.kind == Kind::kAvg;
  };
  return {.values = is_percentile(query.function),
          .whole = query.top.has_value(),
          .whole_values = query.top && is_percentile(query.top->by),
          .sums_only = is_sum(query.function) && (!query.top || is_sum(query.top->by))};
}

SaltScan::SaltScan(const ScanContext& context, const Metric& metric, const RollupPlan& plan,
                   const StepGrid& grid, TimeSpan span)
    : context_(context),
      metric_(metric),
      plan_(plan),
      span_(span),
      table_(grid, KeepsOf(context.query), context.use) {}

absl::Status SaltScan::Run(uint8_t salt) {
  const auto begun = std::chrono::steady_clock::now();
  absl::Status status = Scan(salt);
  FreeRow();
  cost_.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
  return status;
}

absl::Status SaltScan::Scan(uint8_t salt) {
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

void SaltScan::AddMissing(const RowKey& row, const std::string& text) {
  missing_.push_back(fmt::format("metric '{}', from period {}: {}", metric_.name, row.period_start_s, text));
}

absl::Status SaltScan::TakeRead(uint64_t bytes) {
  KV_RETURN_IF_ERROR(context_.use.TakeRead(bytes));
  return TakeRowMemory(bytes);
}

absl::Status SaltScan::TakeRowMemory(uint64_t bytes) {
  row_memory_ += bytes;
  return context_.use.TakeMemory(bytes);
}

void SaltScan::FreeRow() { context_.use.FreeMemory(std::exchange(row_memory_, 0)); }

absl::Status SaltScan::TakeRow(const StoredRow& row) {
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
  // A new reader may lie where the last one of another row was.
  runs_of_ = nullptr;
  for (uint32_t series = 0;; ++series) {
    if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const bool more, merge->Next());
    if (!more) break;
    if (Matches(merge->segments())) KV_RETURN_IF_ERROR(TakeSeries(*merge));
  }
  FreeRow();
  return absl::OkStatus();
}

absl::Status SaltScan::TakeSeries(RowMerge& merge) {
  if (SeriesReader* const reader = merge.only_reader()) {
    KV_ASSIGN_OR_RETURN(const bool taken, TakeIntegers(*reader));
    if (taken) return absl::OkStatus();
  }
  KV_RETURN_IF_ERROR(merge.Read(points_));
  return table_.Add(matched_, group_, metric_.kind, points_, span_);
}

absl::StatusOr<bool> SaltScan::TakeIntegers(SeriesReader& reader) {
  if (table_.keeps_values()) return false;
  if (runs_of_ != &reader || runs_number_ != reader.times_number()) {
    table_.grid().Divide(reader.times(), span_.from, span_.to, runs_);
    runs_of_ = &reader;
    runs_number_ = reader.times_number();
  }
  if (table_.keeps_sums_only()) {
    KV_ASSIGN_OR_RETURN(const bool summed, reader.ReadSums(runs_, sums_));
    if (summed) {
      KV_RETURN_IF_ERROR(table_.AddSums(matched_, group_, runs_, sums_));
      return true;
    }
  }
  KV_ASSIGN_OR_RETURN(const bool read, reader.ReadIntegers(integers_));
  if (!read) return false;
  KV_RETURN_IF_ERROR(table_.AddIntegers(matched_, group_, runs_, reader.times(), integers_));
  return true;
}

absl::Status SaltScan::TakeRolledRow(const RolledRow& row) {
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

bool SaltScan::Matches(std::span<const uint32_t> segments) {
  matched_.clear();
  context_.filters.Match(segments, matched_);
  if (matched_.empty()) return false;
  context_.filters.Group(segments, group_);
  return true;
}

}  // namespace kvstore::reports
