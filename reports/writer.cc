#include "reports/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/big_endian.h"
#include "reports/batch_memory.h"
#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/deletes.h"
#include "reports/row_merge.h"
#include "reports/row_puts.h"
#include "reports/rows.h"
#include "reports/stable_hash.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kPointsOfPart = 65'536;
constexpr size_t kSketchBytesOfPart = size_t{1} << 20;

/// A series with the IDs of its segments.
struct PlacedSeries {
  uint32_t metric = 0;  // its ID
  uint8_t salt = 0;
  std::vector<uint32_t> segments;
};

/// Points of one series that lie in one row: those from begin to end, exclusive, of the sorted points.
struct Run {
  uint32_t series = 0;
  size_t begin = 0;
  size_t end = 0;
};
/// The runs of each row, by segments.
using RunsByRow = std::map<RowKey, std::vector<Run>>;

/// Sorts points by series, each by time. Points with the same series and time keep their order.
///
/// ends  of each series the end of its points.
std::vector<Batch::Point> SortPoints(const Batch& batch, std::vector<size_t>& ends) {
  // A counting sort: points are many, and mostly in the order of time already.
  ends.assign(batch.series().size(), 0);
  for (const Batch::Point& point : batch.points()) ++ends[point.series];
  std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), size_t{0});
  std::vector<Batch::Point> sorted(batch.size());
  for (const Batch::Point& point : batch.points()) sorted[ends[point.series]++] = point;
  const auto earlier = [](const Batch::Point& a, const Batch::Point& b) { return a.time < b.time; };
  auto begin = sorted.begin();
  for (const size_t end : ends) {
    const auto series_end = sorted.begin() + static_cast<ptrdiff_t>(end);
    if (!std::is_sorted(begin, series_end, earlier)) std::stable_sort(begin, series_end, earlier);
    begin = series_end;
  }
  return sorted;
}

/// Returns the place of each ID among all of them.
std::vector<uint32_t> RanksOf(const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ids[a] < ids[b]; });
  std::vector<uint32_t> ranks(ids.size());
  for (uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

/// Returns the numbers of a batch's series by the IDs of their segments.
///
/// ids  of the values of each key.
std::vector<uint32_t> OrderSeries(const Batch& batch, const std::vector<std::vector<uint32_t>>& ids) {
  // A counting sort for each key, from the last one to the first: comparing segments would take longer where
  // each point has a series of its own.
  const auto& series = batch.series();
  std::vector<uint32_t> order(series.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<uint32_t> sorted(series.size());
  for (size_t key = ids.size(); key-- > 0;) {
    const std::vector<uint32_t> ranks = RanksOf(ids[key]);
    std::vector<size_t> begins(ranks.size(), 0);
    for (const Batch::Series& one : series) ++begins[ranks[one.values[key]]];
    std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), size_t{0});
    for (const uint32_t number : order) sorted[begins[ranks[series[number].values[key]]]++] = number;
    order.swap(sorted);
  }
  return order;
}

/// Appends the metric and the segments of a series, whatever the report's segment keys were when the batch
/// was made: those that were added later have their default, which takes no part.
void AppendSeries(std::string& out, const Batch& batch, const Batch::Series& series) {
  const ReportInfo& info = batch.info();
  AppendBigEndian(out, info.metrics[series.metric].id);
  for (uint32_t key = 0; key < series.values.size(); ++key) {
    const std::string& value = batch.values(key)[series.values[key]];
    if (info.keys[key].default_value == value) continue;
    AppendBigEndian(out, key);
    AppendBigEndian(out, static_cast<uint32_t>(value.size()));
    out += value;
  }
  AppendBigEndian(out, UINT32_MAX);
}

/// The hash of a batch's points, which does not depend on the order in which they were given, except among
/// those of one series and time. Stored: never change it.
///
/// points, ends  as SortPoints gives them.
uint64_t HashOf(const Batch& batch, std::span<const Batch::Point> points, std::span<const size_t> ends,
                bool add) {
  uint64_t sum = 0;
  std::string bytes;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Batch::Series& series = batch.series()[i];
    const bool numbers = batch.info().metrics[series.metric].kind == MetricKind::kValue;
    bytes.clear();
    AppendSeries(bytes, batch, series);
    for (size_t p = i == 0 ? 0 : ends[i - 1]; p < ends[i]; ++p) {
      AppendBigEndian(bytes, static_cast<uint64_t>(points[p].time));
      if (numbers) {
        bytes.push_back(points[p].number.is_integer() ? 1 : 0);
        AppendBigEndian(bytes, points[p].number.bits());
        continue;
      }
      const std::string& sketch = batch.sketches()[points[p].sketch];
      AppendBigEndian(bytes, static_cast<uint64_t>(sketch.size()));
      bytes += sketch;
    }
    sum += StableHash(bytes);
  }
  bytes.assign(1, add ? 1 : 0);
  AppendBigEndian(bytes, sum);
  return StableHash(bytes);
}

/// One write of a batch, from local numbers to chunks.
class BatchWrite {
 public:
  BatchWrite(const Metadata& metadata, const Batch& batch, bool add)
      : metadata_(metadata), batch_(batch), info_(batch.info()), add_(add) {
    points_ = SortPoints(batch, ends_);
  }

  uint64_t Hash() const { return HashOf(batch_, points_, ends_, add_); }

  absl::Status GiveIds() {
    const size_t keys = info_.keys.size();
    std::vector<std::vector<uint32_t>> ids(keys);
    for (uint32_t key = 0; key < keys; ++key) {
      KV_ASSIGN_OR_RETURN(ids[key], metadata_.GiveValues(info_.name, key, batch_.values(key)));
    }
    for (const Batch::Series& series : batch_.series()) {
      PlacedSeries placed{.metric = info_.metrics[series.metric].id};
      placed.segments.reserve(keys);
      for (size_t key = 0; key < keys; ++key) placed.segments.push_back(ids[key][series.values[key]]);
      placed.salt = SaltOf(info_.settings.id, placed.metric, placed.segments, info_.settings.salts);
      series_.push_back(std::move(placed));
    }
    by_segments_ = OrderSeries(batch_, ids);
    return absl::OkStatus();
  }

  absl::Status Write(std::string_view chunk_number, bool repeatable) {
    RunsByRow rows;
    for (const uint32_t series : by_segments_) {
      AddRuns(series, series == 0 ? 0 : ends_[series - 1], ends_[series], rows);
    }
    RowPuts puts(metadata_, repeatable);
    absl::Status status = PutRuns(rows, chunk_number, repeatable, puts);
    return status.ok() ? status : puts.ErrorOf(std::move(status));
  }

 private:
  /// Divides the points of a series, from begin to end, among the rows of their periods.
  void AddRuns(uint32_t series, size_t begin, size_t end, RunsByRow& rows) const {
    const PlacedSeries& placed = series_[series];
    const uint64_t period_s = info_.settings.period_s;
    while (begin < end) {
      const uint64_t period = PeriodOf(points_[begin].time, period_s);
      const auto in_period = [&](const Batch::Point& point) {
        return static_cast<uint64_t>(point.time) / 1000 - period < period_s;
      };
      size_t run_end = begin + 1;
      while (run_end < end && in_period(points_[run_end])) ++run_end;
      rows[{placed.salt, info_.settings.id, placed.metric, period}].push_back({series, begin, run_end});
      begin = run_end;
    }
  }

  absl::Status PutRuns(const RunsByRow& rows, std::string_view chunk_number, bool repeatable,
                       RowPuts& puts) const {
    for (const auto& [row, runs] : rows) {
      KV_ASSIGN_OR_RETURN(std::vector<Part> parts, PartsOf(runs, chunk_number, repeatable));
      KV_RETURN_IF_ERROR(puts.Put(row, std::move(parts)));
    }
    return puts.Flush();
  }

  /// The points of one row as chunks.
  absl::StatusOr<std::vector<Part>> PartsOf(std::span<const Run> runs, std::string_view number,
                                            bool repeatable) const {
    const MetricKind kind = info_.metrics[batch_.series()[runs.front().series].metric].kind;
    std::vector<Part> parts;
    PointBlock block(kind, static_cast<uint32_t>(info_.keys.size()));
    size_t sketch_bytes = 0;
    const auto finish = [&]() -> absl::Status {
      if (block.points() == 0) return absl::OkStatus();
      if (parts.size() > UINT16_MAX)
        return absl::InvalidArgumentError("points: too many for one row in one batch");
      KV_ASSIGN_OR_RETURN(std::string bytes, EncodeChunk(block, {.repeatable = repeatable}));
      parts.push_back({NameOfPart(number, static_cast<uint16_t>(parts.size())), std::move(bytes)});
      block = PointBlock(kind, static_cast<uint32_t>(info_.keys.size()));
      sketch_bytes = 0;
      return absl::OkStatus();
    };
    SeriesPoints points;
    for (const Run& run : runs) {
      for (size_t i = run.begin; i < run.end; ++i) {
        KV_RETURN_IF_ERROR(AddPoint(points, points_[i], kind));
        if (!points.sketches.empty()) sketch_bytes += points.sketches.back().size();
        const bool last = i + 1 == run.end;
        const bool full =
            block.points() + points.size() >= kPointsOfPart || sketch_bytes >= kSketchBytesOfPart;
        // A part may only end between two times: each point is in one part.
        if (!last && !(full && points_[i + 1].time != points_[i].time)) continue;
        block.Append(series_[run.series].segments, std::move(points));
        if (full) KV_RETURN_IF_ERROR(finish());
      }
    }
    KV_RETURN_IF_ERROR(finish());
    return parts;
  }

  /// Adds a point after the others of its series, or merges it with the last one if that has the same time.
  absl::Status AddPoint(SeriesPoints& points, const Batch::Point& point, MetricKind kind) const {
    const bool again = points.size() > 0 && points.times.back() == point.time;
    if (kind == MetricKind::kValue) {
      Number value = point.number;
      if (again && add_) {
        KV_ASSIGN_OR_RETURN(value, AddNumbers(points.numbers.back(), value));
      }
      if (again) points.numbers.pop_back();
      points.numbers.push_back(value);
    } else {
      std::string sketch = batch_.sketches()[point.sketch];
      if (again && add_) {
        KV_ASSIGN_OR_RETURN(sketch, AddSketches(kind, points.sketches.back(), sketch));
      }
      if (again) points.sketches.pop_back();
      points.sketches.push_back(std::move(sketch));
    }
    if (again) return absl::OkStatus();
    points.times.push_back(point.time);
    points.adds.push_back(add_ ? 1 : 0);
    return absl::OkStatus();
  }

  const Metadata& metadata_;
  const Batch& batch_;
  const ReportInfo& info_;
  const bool add_;
  std::vector<PlacedSeries> series_;   // as in the batch
  std::vector<uint32_t> by_segments_;  // the numbers of all series
  std::vector<Batch::Point> points_;   // of the batch, by series and time
  std::vector<size_t> ends_;           // of each series the end of its points
};

absl::Status PutBatch(const Metadata& metadata, const Batch& batch, const WriteBatchOptions& options) {
  BatchWrite write(metadata, batch, options.add);
  const bool repeatable = !options.batch.empty();
  std::string number = NewChunkNumber();
  if (repeatable) {
    KV_ASSIGN_OR_RETURN(number,
                        NumberOfBatch(metadata, batch.info().settings.id, options.batch, write.Hash()));
  }
  KV_RETURN_IF_ERROR(write.GiveIds());
  return write.Write(number, repeatable);
}

}  // namespace

absl::StatusOr<uint64_t> WriteBatch(const Metadata& metadata, const Batch& batch,
                                    const WriteBatchOptions& options) {
  if (batch.size() == 0) return 0;
  KV_RETURN_IF_ERROR(metadata.CheckCurrent(batch.info()));
  const absl::Status written = PutBatch(metadata, batch, options);
  // Also after an error: a part may have been written before it.
  KV_RETURN_IF_ERROR(RemoveIfDropped(metadata, batch.info()));
  KV_RETURN_IF_ERROR(written);
  return batch.size();
}

}  // namespace kvstore::reports
