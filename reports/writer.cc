#include "reports/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <utility>

#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/row_merge.h"
#include "reports/row_puts.h"
#include "reports/rows.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

constexpr size_t kPointsOfPart = 65'536;
constexpr size_t kSketchBytesOfPart = size_t{1} << 20;

/// A series with the IDs of its segments.
struct PlacedSeries {
  uint32_t metric = 0;
  uint8_t salt = 0;
  uint32_t rank = 0;  // among all, by segments
};

/// The place of a point among all of a batch.
struct Place {
  uint32_t row = 0;  // the number of its row
  uint32_t rank = 0;
  int64_t time = 0;
  uint32_t point = 0;  // its index in the batch, so that later ones come later
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// One write of a batch, from local numbers to chunks.
class BatchWrite {
 public:
  BatchWrite(const Metadata& metadata, const Batch& batch, bool add)
      : metadata_(metadata), batch_(batch), info_(batch.info()), add_(add) {}

  absl::Status GiveIds() {
    const size_t keys = info_.keys.size();
    std::vector<std::vector<uint32_t>> ids(keys);
    for (uint32_t key = 0; key < keys; ++key) {
      KV_ASSIGN_OR_RETURN(ids[key], metadata_.GiveValues(info_.name, key, batch_.values(key)));
    }
    for (const Batch::Series& series : batch_.series()) {
      std::vector<uint32_t> segments;
      for (size_t key = 0; key < keys; ++key) segments.push_back(ids[key][series.values[key]]);
      const uint32_t metric = info_.metrics[series.metric].id;
      series_.push_back({metric, SaltOf(info_.settings.id, metric, segments, info_.settings.salts)});
      segments_.push_back(std::move(segments));
    }
    std::vector<uint32_t> order(series_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return segments_[a] < segments_[b]; });
    for (uint32_t rank = 0; rank < order.size(); ++rank) series_[order[rank]].rank = rank;
    by_rank_ = std::move(order);
    return absl::OkStatus();
  }

  absl::Status Write(std::string_view chunk_number, bool repeatable) {
    // Rows get numbers first, since keys of rows take long to compare.
    std::map<RowKey, uint32_t> rows;
    const auto& points = batch_.points();
    const uint64_t period_s = info_.settings.period_s;
    const auto row_of = [&](const Batch::Point& point) {
      const PlacedSeries& series = series_[point.series];
      return RowKey{series.salt, info_.settings.id, series.metric, PeriodOf(point.time, period_s)};
    };
    RowKey last_key;
    std::vector<std::map<RowKey, uint32_t>::iterator> row_of_point;
    row_of_point.reserve(points.size());
    for (const Batch::Point& point : points) {
      const RowKey key = row_of(point);
      const bool same = !row_of_point.empty() && key == last_key;
      row_of_point.push_back(same ? row_of_point.back() : rows.try_emplace(key, 0).first);
      last_key = key;
    }
    std::vector<RowKey> keys;
    for (auto& [key, number] : rows) {
      number = static_cast<uint32_t>(keys.size());
      keys.push_back(key);
    }
    std::vector<Place> places;
    places.reserve(points.size());
    for (uint32_t i = 0; i < points.size(); ++i) {
      places.push_back({row_of_point[i]->second, series_[points[i].series].rank, points[i].time, i});
    }
    std::sort(places.begin(), places.end());
    RowPuts puts(metadata_, repeatable);
    for (size_t begin = 0; begin < places.size();) {
      size_t end = begin;
      while (end < places.size() && places[end].row == places[begin].row) ++end;
      KV_ASSIGN_OR_RETURN(std::vector<Part> parts,
                          PartsOf(std::span(places).subspan(begin, end - begin), chunk_number));
      KV_RETURN_IF_ERROR(puts.Put(keys[places[begin].row], std::move(parts)));
      begin = end;
    }
    return puts.Flush();
  }

 private:
  /// The points of one row as chunks.
  absl::StatusOr<std::vector<Part>> PartsOf(std::span<const Place> places, std::string_view number) {
    const MetricKind kind = KindOf(places.front());
    std::vector<Part> parts;
    PointBlock block(kind, static_cast<uint32_t>(info_.keys.size()));
    size_t sketch_bytes = 0;
    const auto finish = [&]() -> absl::Status {
      if (block.points() == 0) return absl::OkStatus();
      if (parts.size() > UINT16_MAX)
        return absl::InvalidArgumentError("points: too many for one row in one batch");
      KV_ASSIGN_OR_RETURN(std::string bytes, EncodeChunk(block, {}));
      parts.push_back({NameOfPart(number, static_cast<uint16_t>(parts.size())), std::move(bytes)});
      block = PointBlock(kind, static_cast<uint32_t>(info_.keys.size()));
      sketch_bytes = 0;
      return absl::OkStatus();
    };
    SeriesPoints points;
    for (size_t i = 0; i < places.size(); ++i) {
      KV_RETURN_IF_ERROR(AddPoint(points, places[i], kind));
      if (!points.sketches.empty()) sketch_bytes += points.sketches.back().size();
      const bool last = i + 1 == places.size() || places[i + 1].rank != places[i].rank;
      const bool full = block.points() + points.size() >= kPointsOfPart || sketch_bytes >= kSketchBytesOfPart;
      // A part may only end between two times: each point is in one part.
      if (!last && !(full && places[i + 1].time != places[i].time)) continue;
      block.Append(segments_[by_rank_[places[i].rank]], points);
      points.clear();
      if (full) KV_RETURN_IF_ERROR(finish());
    }
    KV_RETURN_IF_ERROR(finish());
    return parts;
  }

  /// Adds a point behind the others of its series, or merges it with the last one if that has the same time.
  absl::Status AddPoint(SeriesPoints& points, const Place& place, MetricKind kind) {
    const Batch::Point& point = batch_.points()[place.point];
    const bool again = points.size() > 0 && points.times.back() == place.time;
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
    points.times.push_back(place.time);
    points.adds.push_back(add_ ? 1 : 0);
    return absl::OkStatus();
  }

  MetricKind KindOf(const Place& place) const {
    return info_.metrics[batch_.series()[batch_.points()[place.point].series].metric].kind;
  }

  const Metadata& metadata_;
  const Batch& batch_;
  const ReportInfo& info_;
  const bool add_;
  std::vector<PlacedSeries> series_;             // as in the batch
  std::vector<std::vector<uint32_t>> segments_;  // of each of them
  std::vector<uint32_t> by_rank_;                // the series of each rank
};

}  // namespace

absl::StatusOr<uint64_t> WriteBatch(const Metadata& metadata, const Batch& batch,
                                    const WriteBatchOptions& options) {
  if (batch.size() == 0) return 0;
  KV_RETURN_IF_ERROR(metadata.CheckCurrent(batch.info()));
  BatchWrite write(metadata, batch, options.add);
  KV_RETURN_IF_ERROR(write.GiveIds());
  std::string number = NewChunkNumber();
  if (!options.batch.empty()) {
    KV_ASSIGN_OR_RETURN(number, metadata.NumberOfBatch(batch.info().settings.id, options.batch, number));
  }
  KV_RETURN_IF_ERROR(write.Write(number, !options.batch.empty()));
  return batch.size();
}

}  // namespace kvstore::reports
