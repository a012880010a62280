#include "reports/rollup_parts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "reports/chunk.h"
#include "reports/group_table.h"
#include "reports/row_merge.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// The most memory that the aggregates of one roll-up of one row may take.
constexpr size_t kMaxMemoryBytes = size_t{64} << 20;

/// The aggregates of a row's points. RESOURCE_EXHAUSTED beyond kMaxMemoryBytes; FAILED_PRECONDITION if
/// numbers that are added pass their range.
absl::Status Aggregates(const ReportInfo& info, const std::vector<LiveChunk>& live, const Rollup& rollup,
                        TimeSpan span, GroupTable& table) {
  const uint32_t filter[] = {0};
  KV_ASSIGN_OR_RETURN(const auto merge,
                      RowMerge::Make(live, static_cast<uint32_t>(info.keys.size()), nullptr));
  std::vector<bool> has_key;
  for (const SegmentKey& key : info.keys) {
    has_key.push_back(std::find(rollup.keys.begin(), rollup.keys.end(), key.name) != rollup.keys.end());
  }
  SeriesPoints points;
  std::vector<uint32_t> group;
  for (uint32_t series = 0;; ++series) {
    if (series % kSeriesOfLook == 0) KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(const bool more, merge->Next());
    if (!more) return absl::OkStatus();
    KV_RETURN_IF_ERROR(merge->Read(points));
    group.assign(merge->segments().begin(), merge->segments().end());
    for (size_t key = 0; key < group.size(); ++key) {
      if (key >= has_key.size() || !has_key[key]) group[key] = 0;
    }
    KV_RETURN_IF_ERROR(table.Add(filter, group, live.front().chunk.directory().kind, points, span));
  }
}

/// Collects the numbers of one chunk.
class ColumnWriter {
 public:
  ColumnWriter(RollupPart part, MetricKind kind, uint32_t keys) : part_(part), block_(kind, keys) {}

  void Add(int64_t time, const Number& number) {
    Begin(time);
    series_.numbers.push_back(number);
  }
  void Add(int64_t time, std::string sketch) {
    Begin(time);
    series_.sketches.push_back(std::move(sketch));
  }
  void EndSeries(std::span<const uint32_t> segments) {
    if (series_.size() > 0) block_.Append(segments, series_);
    series_.clear();
  }

  RollupPart part() const { return part_; }
  bool empty() const { return block_.points() == 0; }
  absl::StatusOr<std::string> Encode() const { return EncodeChunk(block_, {}); }

 private:
  void Begin(int64_t time) {
    series_.times.push_back(time);
    series_.adds.push_back(0);
  }

  RollupPart part_;
  PointBlock block_;
  SeriesPoints series_;
};

/// The chunks of the parts of plain values, in the order in which a part has them.
class ValueColumns {
 public:
  explicit ValueColumns(uint32_t keys) {
    const auto add = [&](RollupPart part, size_t chunks) {
      for (size_t i = 0; i < chunks; ++i) columns_.emplace_back(part, MetricKind::kValue, keys);
    };
    add(RollupPart::kCount, 1);
    add(RollupPart::kMin, 1);
    add(RollupPart::kMax, 1);
    add(RollupPart::kLast, 2);
    add(RollupPart::kSum, 1 + Summary::kMaxReals);
  }

  void Add(int64_t time, const Summary& summary) {
    columns_[0].Add(time, Number::Integer(static_cast<int64_t>(summary.count)));
    columns_[1].Add(time, summary.min);
    columns_[2].Add(time, summary.max);
    columns_[3].Add(time, summary.last);
    columns_[4].Add(time, Number::Integer(summary.last_time - time));
    columns_[5].Add(time, Number::Integer(summary.integers));
    for (size_t i = 0; i < summary.real_count; ++i) {
      columns_[6 + i].Add(time, Number::Real(summary.reals[i]));
    }
  }

  std::vector<ColumnWriter>& all() { return columns_; }

 private:
  std::vector<ColumnWriter> columns_;
};

/// Returns the chunks of each part; nullopt if a chunk would be too large.
absl::StatusOr<std::optional<RollupChunks>> Encode(const std::vector<ColumnWriter>& columns) {
  RollupChunks chunks;
  for (const ColumnWriter& column : columns) {
    std::vector<std::string>& of_part = chunks[column.part()];
    // Each part has its first chunk, or the first two; those of real numbers only if there are any.
    const bool optional = column.part() == RollupPart::kSum && !of_part.empty();
    if (optional && column.empty()) continue;
    auto bytes = column.Encode();
    if (absl::IsInvalidArgument(bytes.status())) return std::nullopt;
    if (!bytes.ok()) return bytes.status();
    of_part.push_back(*std::move(bytes));
  }
  return chunks;
}

absl::StatusOr<std::optional<RollupChunks>> EncodeValues(const GroupTable& table, const StepGrid& grid,
                                                         uint32_t keys) {
  ValueColumns columns(keys);
  for (const auto& [key, group] : table.groups()) {
    for (size_t step = 0; step < grid.size(); ++step) {
      const Aggregate* cell = group.Find(step);
      if (cell == nullptr) continue;
      const std::optional<Summary> summary = cell->Summarize();
      if (!summary) return std::nullopt;
      columns.Add(grid.start(step), *summary);
    }
    for (ColumnWriter& column : columns.all()) column.EndSeries(key.segments);
  }
  return Encode(columns.all());
}

absl::StatusOr<std::optional<RollupChunks>> EncodeSketches(const GroupTable& table, const StepGrid& grid,
                                                           MetricKind kind, uint32_t keys) {
  std::vector<ColumnWriter> columns;
  columns.emplace_back(RollupPart::kSketch, kind, keys);
  size_t bytes = 0;
  for (const auto& [key, group] : table.groups()) {
    for (size_t step = 0; step < grid.size(); ++step) {
      const Aggregate* cell = group.Find(step);
      if (cell == nullptr) continue;
      std::string sketch = cell->Sketch();
      bytes += sketch.size();
      if (bytes > kMaxChunkBodyBytes) return std::nullopt;
      columns[0].Add(grid.start(step), std::move(sketch));
    }
    columns[0].EndSeries(key.segments);
  }
  return Encode(columns);
}

}  // namespace

absl::StatusOr<std::optional<RollupChunks>> RollUp(const ReportInfo& info, const RowKey& key,
                                                   const std::vector<LiveChunk>& live, const Rollup& rollup) {
  if (key.period_start_s > static_cast<uint64_t>(kMaxTimeMs) / 1000) return std::nullopt;
  const auto from = static_cast<int64_t>(key.period_start_s * 1000);
  const TimeSpan span{from,
                      std::min(from + static_cast<int64_t>(info.settings.period_s * 1000), kMaxTimeMs + 1)};
  const Step step{Step::Unit::kMilliseconds, static_cast<int64_t>(rollup.step_ms)};
  KV_ASSIGN_OR_RETURN(const StepGrid grid,
                      StepGrid::Make(step, absl::UTCTimeZone(), span.from, span.to, kMaxRollupSteps));
  QueryUse use;
  use.max_memory_bytes = kMaxMemoryBytes;
  use.max_groups = std::numeric_limits<size_t>::max();
  GroupTable table(grid, {}, use);
  absl::Status status = Aggregates(info, live, rollup, span, table);
  if (absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status)) return std::nullopt;
  if (!status.ok()) return status;
  const MetricKind kind = live.front().chunk.directory().kind;
  // A group's key has as many segments as the report, or any of the chunks, has keys, whichever is more.
  size_t keys = info.keys.size();
  for (const LiveChunk& chunk : live) keys = std::max(keys, chunk.chunk.directory().segment_values.size());
  const auto count = static_cast<uint32_t>(keys);
  return kind == MetricKind::kValue ? EncodeValues(table, grid, count)
                                    : EncodeSketches(table, grid, kind, count);
}

}  // namespace kvstore::reports
