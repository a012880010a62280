#include "reports/row_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <utility>

#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Appends a copy of one point.
void CopyPoint(SeriesPoints& to, const SeriesPoints& from, size_t at) {
  to.times.push_back(from.times[at]);
  if (!from.numbers.empty()) to.numbers.push_back(from.numbers[at]);
  if (!from.sketches.empty()) to.sketches.push_back(from.sketches[at]);
  to.adds.push_back(from.adds[at]);
}

/// The order of two series by their segments; there are as many of both.
std::strong_ordering CompareSegments(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

absl::StatusOr<Number> AddNumbers(const Number& a, const Number& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.integer(), b.integer(), &sum)) {
      return absl::FailedPreconditionError("adding to a point passes the range of 64-bit integers");
    }
    return Number::Integer(sum);
  }
  const double sum = a.AsReal() + b.AsReal();
  if (!std::isfinite(sum)) {
    return absl::FailedPreconditionError("adding to a point passes the range of real numbers");
  }
  return Number::Real(sum);
}

absl::StatusOr<std::string> AddSketches(MetricKind kind, const std::string& a, const std::string& b) {
  if (kind == MetricKind::kDistinct) {
    KV_ASSIGN_OR_RETURN(HyperLogLog sketch, HyperLogLog::Decode(a));
    KV_ASSIGN_OR_RETURN(const HyperLogLog other, HyperLogLog::Decode(b));
    sketch.Merge(other);
    return sketch.Encode();
  }
  KV_ASSIGN_OR_RETURN(QuantileSketch sketch, QuantileSketch::Decode(a));
  KV_ASSIGN_OR_RETURN(const QuantileSketch other, QuantileSketch::Decode(b));
  KV_RETURN_IF_ERROR(sketch.Merge(other));
  return sketch.Encode();
}

absl::Status MergePoints(SeriesPoints& older, const SeriesPoints& newer, MetricKind kind) {
  if (older.size() == 0) {
    older = newer;
    return absl::OkStatus();
  }
  if (older.times.back() < newer.times.front()) {
    // The common case: batches come in the order of time.
    AppendAll(older.times, newer.times);
    AppendAll(older.numbers, newer.numbers);
    AppendAll(older.sketches, newer.sketches);
    AppendAll(older.adds, newer.adds);
    return absl::OkStatus();
  }
  SeriesPoints merged;
  size_t o = 0;
  for (size_t n = 0; n < newer.size(); ++n) {
    while (o < older.size() && older.times[o] < newer.times[n]) CopyPoint(merged, older, o++);
    CopyPoint(merged, newer, n);
    if (o == older.size() || older.times[o] != newer.times[n]) continue;
    if (newer.adds[n] != 0) {
      if (kind == MetricKind::kValue) {
        KV_ASSIGN_OR_RETURN(merged.numbers.back(), AddNumbers(older.numbers[o], newer.numbers[n]));
      } else {
        KV_ASSIGN_OR_RETURN(merged.sketches.back(), AddSketches(kind, older.sketches[o], newer.sketches[n]));
      }
      merged.adds.back() = older.adds[o];
    }
    ++o;
  }
  while (o < older.size()) CopyPoint(merged, older, o++);
  older = std::move(merged);
  return absl::OkStatus();
}

void ErasePoints(SeriesPoints& points, const TimeSpan& span) {
  const auto begin =
      std::lower_bound(points.times.begin(), points.times.end(), span.from) - points.times.begin();
  const auto end = std::lower_bound(points.times.begin(), points.times.end(), span.to) - points.times.begin();
  if (begin >= end) return;
  const auto erase = [&](auto& column) {
    if (!column.empty()) column.erase(column.begin() + begin, column.begin() + end);
  };
  erase(points.numbers);
  erase(points.sketches);
  erase(points.adds);
  erase(points.times);
}

absl::StatusOr<std::unique_ptr<RowMerge>> RowMerge::Make(const std::vector<LiveChunk>& live, uint32_t keys,
                                                         const WantChunk& want, const TakeBytes& memory) {
  std::unique_ptr<RowMerge> merge(new RowMerge());
  // A key may have been added after the caller read the report.
  for (const LiveChunk& chunk : live) {
    keys = std::max(keys, static_cast<uint32_t>(chunk.chunk.directory().segment_values.size()));
  }
  std::vector<bool> wanted;
  uint64_t body_bytes = 0;
  for (const LiveChunk& chunk : live) {
    const ChunkDirectory& directory = chunk.chunk.directory();
    wanted.push_back(directory.points > 0 && (want == nullptr || want(directory)));
    if (wanted.back()) body_bytes += directory.body_bytes;
  }
  if (body_bytes > kMaxMergedBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "the chunks of a row have {} bytes when they are decompressed, the limit is {}; compact the "
        "report, or give it more salts or a shorter period",
        body_bytes, kMaxMergedBytes));
  }
  if (memory != nullptr) KV_RETURN_IF_ERROR(memory(body_bytes));
  for (size_t i = 0; i < live.size(); ++i) {
    const LiveChunk& chunk = live[i];
    const ChunkDirectory& directory = chunk.chunk.directory();
    Source source{.live = &chunk};
    if (wanted[i]) {
      KV_ASSIGN_OR_RETURN(source.reader, SeriesReader::Make(chunk.chunk, keys));
      KV_ASSIGN_OR_RETURN(source.at_series, source.reader->Next());
    }
    merge->has_deletes_ = merge->has_deletes_ || !directory.notes.deletes.empty();
    if (source.at_series || !directory.notes.deletes.empty()) merge->sources_.push_back(std::move(source));
  }
  return merge;
}

absl::StatusOr<bool> RowMerge::Next() {
  // Those on the series that was given last go on, also where it was not read.
  for (Source* const source : found_) {
    KV_ASSIGN_OR_RETURN(source->at_series, source->reader->Next());
  }
  found_.clear();
  for (Source& source : sources_) {
    if (!source.at_series) continue;
    if (!found_.empty()) {
      const auto order = CompareSegments(source.reader->segments(), segments());
      if (order > 0) continue;
      if (order < 0) found_.clear();
    }
    found_.push_back(&source);
  }
  return !found_.empty();
}

absl::Status RowMerge::Read(SeriesPoints& points) {
  points.clear();
  SeriesPoints newer;
  size_t next = 0;  // of found_
  for (Source& source : sources_) {
    const ChunkDirectory& directory = source.live->chunk.directory();
    if (has_deletes_) {
      for (const TimeSpan& span : directory.notes.deletes) ErasePoints(points, span);
    }
    if (next == found_.size() || found_[next] != &source) continue;
    ++next;
    if (points.size() == 0) {
      KV_RETURN_IF_ERROR(source.reader->Read(points));
      continue;
    }
    KV_RETURN_IF_ERROR(source.reader->Read(newer));
    KV_RETURN_IF_ERROR(MergePoints(points, newer, directory.kind));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::reports
