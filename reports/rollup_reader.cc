#include "reports/rollup_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

absl::Status DamagedParts() { return absl::DataLossError("the parts of a roll-up do not fit together"); }

/// Whether a part may have so many chunks.
bool MayHave(RollupPart part, size_t chunks) {
  switch (part) {
    case RollupPart::kSum:
      return chunks >= 1 && chunks <= 1 + Summary::kMaxReals;
    case RollupPart::kLast:
      return chunks == 2;
    default:
      return chunks == 1;
  }
}

bool IsFinite(const Number& number) { return number.is_integer() || std::isfinite(number.real()); }

}  // namespace

absl::StatusOr<std::unique_ptr<RollupReader>> RollupReader::Make(const Parts& parts, MetricKind kind,
                                                                 uint64_t step_ms, uint32_t keys) {
  std::unique_ptr<RollupReader> reader(new RollupReader(kind, step_ms));
  const RollupPart first = kind == MetricKind::kValue ? RollupPart::kCount : RollupPart::kSketch;
  const auto leader = parts.find(first);
  if (leader == parts.end()) return DamagedParts();
  KV_RETURN_IF_ERROR(reader->AddColumns(first, leader->second, keys));
  for (const auto& [part, cell] : parts) {
    if (part == first) continue;
    if (part == RollupPart::kSketch || first == RollupPart::kSketch) return DamagedParts();
    KV_RETURN_IF_ERROR(reader->AddColumns(part, cell, keys));
  }
  return reader;
}

absl::Status RollupReader::AddColumns(RollupPart part, const RollupCell& cell, uint32_t keys) {
  if (!MayHave(part, cell.chunks.size())) return DamagedParts();
  for (size_t i = 0; i < cell.chunks.size(); ++i) {
    KV_ASSIGN_OR_RETURN(Chunk chunk, Chunk::Open(cell.chunks[i]));
    if (chunk.directory().kind != kind_) return DamagedParts();
    auto column = std::make_unique<Column>(Column{.part = part, .index = i, .chunk = std::move(chunk)});
    // A key may have been added after the caller read the report.
    keys = std::max(keys, static_cast<uint32_t>(column->chunk.directory().segment_values.size()));
    KV_ASSIGN_OR_RETURN(column->reader, SeriesReader::Make(column->chunk, keys));
    KV_ASSIGN_OR_RETURN(column->at_series, column->reader->Next());
    columns_.push_back(std::move(column));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RollupReader::Next() {
  for (const auto& column : columns_) {
    // Those on the series that was given last go on, also where it was not read.
    if (begun_ && column->at_series && std::ranges::equal(column->reader->segments(), segments_)) {
      KV_ASSIGN_OR_RETURN(column->at_series, column->reader->Next());
    }
  }
  begun_ = true;
  const Column& first = *columns_.front();
  if (first.at_series) segments_.assign(first.reader->segments().begin(), first.reader->segments().end());
  for (const auto& column : columns_) {
    if (!column->at_series) continue;
    // A series that the first column does not have.
    if (!first.at_series || std::ranges::lexicographical_compare(column->reader->segments(), segments_)) {
      return DamagedParts();
    }
  }
  return first.at_series;
}

absl::Status RollupReader::Read(SeriesSummary& series) {
  series.values.clear();
  series.sketches.clear();
  for (const auto& column : columns_) {
    const bool there = column->at_series && std::ranges::equal(column->reader->segments(), segments_);
    if (!there && column->sparse()) continue;
    if (!there) return DamagedParts();
    KV_RETURN_IF_ERROR(column->reader->Read(points_));
    if (column == columns_.front()) {
      series.times = points_.times;
      const auto odd = [&](int64_t time) { return time % step_ms_ != 0; };
      if (std::any_of(series.times.begin(), series.times.end(), odd)) return DamagedParts();
      if (kind_ != MetricKind::kValue) {
        series.sketches = std::move(points_.sketches);
        return absl::OkStatus();
      }
      series.values.resize(series.times.size());
    }
    if (!TakeColumn(*column, points_, series)) return DamagedParts();
  }
  return absl::OkStatus();
}

bool RollupReader::TakeColumn(const Column& column, const SeriesPoints& points, SeriesSummary& series) const {
  size_t at = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    while (at < series.times.size() && series.times[at] < points.times[i]) ++at;
    if (at == series.times.size() || series.times[at] != points.times[i]) return false;
    if (!TakeNumber(column, points.numbers[i], series.times[at], series.values[at])) return false;
  }
  return column.sparse() || points.size() == series.times.size();
}

bool RollupReader::TakeNumber(const Column& column, const Number& number, int64_t time,
                              Summary& summary) const {
  if (!IsFinite(number)) return false;
  switch (column.part) {
    case RollupPart::kCount:
      if (!number.is_integer() || number.integer() < 1) return false;
      summary.count = static_cast<uint64_t>(number.integer());
      return true;
    case RollupPart::kSum:
      // The integers are first, then the real numbers, of which none is left out.
      if (number.is_integer() != (column.index == 0)) return false;
      if (number.is_integer()) {
        summary.integers = number.integer();
        return true;
      }
      if (summary.real_count + 1 != column.index) return false;
      summary.reals[summary.real_count++] = number.real();
      return true;
    case RollupPart::kMin:
      summary.min = number;
      return true;
    case RollupPart::kMax:
      summary.max = number;
      return true;
    case RollupPart::kLast:
      if (column.index == 0) {
        summary.last = number;
        return true;
      }
      if (!number.is_integer() || number.integer() < 0 || number.integer() >= step_ms_) return false;
      summary.last_time = time + number.integer();
      return true;
    case RollupPart::kSketch:
      break;
  }
  return false;
}

}  // namespace kvstore::reports
