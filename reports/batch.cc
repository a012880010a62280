#include "reports/batch.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/big_endian.h"
#include "json/bytes_json.h"
#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"
#include "reports/status_macros.h"
#include "reports/steps.h"

namespace kvstore::reports {

Batch::Batch(ReportInfo info)
    : info_(std::move(info)), values_(info_.keys.size()), value_indexes_(info_.keys.size()) {}

absl::Status Batch::Check(size_t metric, MetricKind kind, int64_t time_ms, Segments segments) const {
  const Metric& known = info_.metrics[metric];
  if (known.kind != kind) {
    return absl::InvalidArgumentError(
        fmt::format("metric '{}' is of kind {}, and a point of kind {} was given", known.name,
                    Name(known.kind), Name(kind)));
  }
  if (time_ms < 0 || time_ms > kMaxTimeMs) {
    return absl::InvalidArgumentError(fmt::format("time: must be from 1970 to 9999, not {} ms", time_ms));
  }
  if (static_cast<uint64_t>(time_ms) % info_.settings.resolution_ms != 0) {
    return absl::InvalidArgumentError(
        fmt::format("time: {} ms is not a multiple of the report's resolution of {}", time_ms,
                    StepText(info_.settings.resolution_ms)));
  }
  if (segments.size() != info_.keys.size()) {
    return absl::InvalidArgumentError(
        fmt::format("segments: {} values for {} keys", segments.size(), info_.keys.size()));
  }
  for (size_t key = 0; key < segments.size(); ++key) {
    const SegmentKey& segment_key = info_.keys[key];
    if (!segments[key] && !segment_key.default_value) {
      return absl::InvalidArgumentError(
          fmt::format("segments: '{}' is missing, and the key has no default", segment_key.name));
    }
    if (segments[key] && (segments[key]->size() > kMaxSegmentValueBytes || !IsUtf8(*segments[key]))) {
      return absl::InvalidArgumentError(
          fmt::format("segments: the value of '{}' must be UTF-8 of at most {} bytes", segment_key.name,
                      kMaxSegmentValueBytes));
    }
  }
  return absl::OkStatus();
}

uint32_t Batch::SeriesOf(size_t metric, Segments segments) {
  std::string name;
  AppendBigEndian(name, static_cast<uint32_t>(metric));
  Series series{.metric = metric};
  for (size_t key = 0; key < segments.size(); ++key) {
    const std::string_view value =
        segments[key] ? *segments[key] : std::string_view(*info_.keys[key].default_value);
    auto& indexes = value_indexes_[key];
    auto found = indexes.find(absl::string_view(value.data(), value.size()));
    if (found == indexes.end()) {
      found = indexes.emplace(std::string(value), static_cast<uint32_t>(values_[key].size())).first;
      values_[key].emplace_back(value);
    }
    AppendBigEndian(name, found->second);
    series.values.push_back(found->second);
  }
  const auto [at, added] = series_indexes_.emplace(std::move(name), static_cast<uint32_t>(series_.size()));
  if (added) series_.push_back(std::move(series));
  return at->second;
}

absl::Status Batch::Add(size_t metric, int64_t time_ms, Segments segments, const Number& value) {
  KV_RETURN_IF_ERROR(Check(metric, MetricKind::kValue, time_ms, segments));
  if (!value.is_integer() && !std::isfinite(value.real())) {
    return absl::InvalidArgumentError("value: must be a finite number");
  }
  points_.push_back({.series = SeriesOf(metric, segments), .time = time_ms, .number = value});
  return absl::OkStatus();
}

absl::Status Batch::AddDistinct(size_t metric, int64_t time_ms, Segments segments,
                                std::span<const std::string> members) {
  KV_RETURN_IF_ERROR(Check(metric, MetricKind::kDistinct, time_ms, segments));
  HyperLogLog sketch;
  for (const std::string& member : members) sketch.Add(member);
  points_.push_back({.series = SeriesOf(metric, segments),
                     .time = time_ms,
                     .sketch = static_cast<uint32_t>(sketches_.size())});
  sketches_.push_back(sketch.Encode());
  return absl::OkStatus();
}

absl::Status Batch::AddDistribution(size_t metric, int64_t time_ms, Segments segments,
                                    std::span<const double> values) {
  KV_RETURN_IF_ERROR(Check(metric, MetricKind::kDistribution, time_ms, segments));
  QuantileSketch sketch;
  for (const double value : values) {
    if (!std::isfinite(value)) return absl::InvalidArgumentError("values: must be finite numbers");
    sketch.Add(value);
  }
  if (values.empty()) return absl::InvalidArgumentError("values: a distribution needs at least one number");
  points_.push_back({.series = SeriesOf(metric, segments),
                     .time = time_ms,
                     .sketch = static_cast<uint32_t>(sketches_.size())});
  sketches_.push_back(sketch.Encode());
  return absl::OkStatus();
}

absl::Status Batch::AddSketch(size_t metric, int64_t time_ms, Segments segments, std::string_view sketch) {
  const MetricKind kind = info_.metrics[metric].kind;
  if (kind == MetricKind::kValue) {
    return absl::InvalidArgumentError(
        fmt::format("metric '{}' is of kind value, and a sketch was given", info_.metrics[metric].name));
  }
  KV_RETURN_IF_ERROR(Check(metric, kind, time_ms, segments));
  if (kind == MetricKind::kDistinct) {
    if (!HyperLogLog::Decode(sketch).ok())
      return absl::InvalidArgumentError("sketch: the bytes are no sketch of a set");
  } else {
    const auto decoded = QuantileSketch::Decode(sketch);
    if (!decoded.ok()) return absl::InvalidArgumentError("sketch: the bytes are no sketch of a distribution");
    if (decoded->count() == 0)
      return absl::InvalidArgumentError("sketch: a distribution needs at least one number");
  }
  Point point;
  point.series = SeriesOf(metric, segments);
  point.time = time_ms;
  point.sketch = static_cast<uint32_t>(sketches_.size());
  points_.push_back(point);
  sketches_.emplace_back(sketch);
  return absl::OkStatus();
}

}  // namespace kvstore::reports
