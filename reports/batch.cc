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
namespace {

/// Stands for the index of a value that the batch does not have yet.
constexpr uint32_t kNewValue = UINT32_MAX;

/// The value of a segment, which may be the default of its key.
std::string_view ValueOf(const SegmentKey& key, const std::optional<std::string_view>& segment) {
  return segment ? *segment : std::string_view(*key.default_value);
}

}  // namespace

Batch::Batch(ReportInfo info)
    : info_(std::move(info)),
      values_(info_.keys.size()),
      value_indexes_(info_.keys.size()),
      found_(info_.keys.size(), kNewValue) {}

absl::Status Batch::CheckTime(const Metric& metric, MetricKind kind, int64_t time_ms) const {
  if (metric.kind != kind) {
    return absl::InvalidArgumentError(
        fmt::format("metric '{}' is of kind {}, and a point of kind {} was given", metric.name,
                    Name(metric.kind), Name(kind)));
  }
  if (time_ms < 0 || time_ms > kMaxTimeMs) {
    return absl::InvalidArgumentError(fmt::format("time: must be from 1970 to 9999, not {} ms", time_ms));
  }
  if (static_cast<uint64_t>(time_ms) % info_.settings.resolution_ms != 0) {
    return absl::InvalidArgumentError(
        fmt::format("time: {} ms is not a multiple of the report's resolution of {}", time_ms,
                    StepText(info_.settings.resolution_ms)));
  }
  return absl::OkStatus();
}

absl::Status Batch::CheckNumber(const Number& value) {
  if (value.is_integer() || std::isfinite(value.real())) return absl::OkStatus();
  return absl::InvalidArgumentError("value: must be a finite number");
}

absl::Status Batch::Check(size_t metric, MetricKind kind, int64_t time_ms, Segments segments) {
  KV_RETURN_IF_ERROR(CheckTime(info_.metrics[metric], kind, time_ms));
  return FindValues(segments);
}

absl::Status Batch::FindValues(Segments segments) {
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
    const std::string_view value = ValueOf(segment_key, segments[key]);
    // Neighbours often share values, and a value that is in the batch was checked before.
    if (!series_.empty()) {
      const uint32_t last = series_[last_series_].values[key];
      if (values_[key][last] == value) {
        found_[key] = last;
        continue;
      }
    }
    const auto& indexes = value_indexes_[key];
    const auto found = indexes.find(absl::string_view(value.data(), value.size()));
    found_[key] = found == indexes.end() ? kNewValue : found->second;
    if (found_[key] != kNewValue) continue;
    if (value.size() > kMaxSegmentValueBytes || !IsUtf8(value)) {
      return absl::InvalidArgumentError(
          fmt::format("segments: the value of '{}' must be UTF-8 of at most {} bytes", segment_key.name,
                      kMaxSegmentValueBytes));
    }
  }
  return absl::OkStatus();
}

uint32_t Batch::SeriesOf(size_t metric, Segments segments) {
  if (!series_.empty() && series_[last_series_].metric == metric && series_[last_series_].values == found_) {
    return last_series_;
  }
  for (size_t key = 0; key < segments.size(); ++key) {
    if (found_[key] != kNewValue) continue;
    const std::string_view value = ValueOf(info_.keys[key], segments[key]);
    found_[key] = static_cast<uint32_t>(values_[key].size());
    values_[key].emplace_back(value);
    value_indexes_[key].emplace(values_[key].back(), found_[key]);
  }
  name_.clear();
  AppendBigEndian(name_, static_cast<uint32_t>(metric));
  for (const uint32_t value : found_) AppendBigEndian(name_, value);
  const auto [at, added] = series_indexes_.try_emplace(name_, static_cast<uint32_t>(series_.size()));
  if (added) series_.push_back({.metric = metric, .values = found_});
  last_series_ = at->second;
  return last_series_;
}

absl::Status Batch::Add(size_t metric, int64_t time_ms, Segments segments, const Number& value) {
  KV_RETURN_IF_ERROR(Check(metric, MetricKind::kValue, time_ms, segments));
  KV_RETURN_IF_ERROR(CheckNumber(value));
  points_.push_back({.series = SeriesOf(metric, segments), .time = time_ms, .number = value});
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Batch::FindSeries(size_t metric, Segments segments) {
  KV_RETURN_IF_ERROR(FindValues(segments));
  return SeriesOf(metric, segments);
}

absl::Status Batch::AddTo(uint32_t series, int64_t time_ms, const Number& value) {
  KV_RETURN_IF_ERROR(CheckTime(info_.metrics[series_[series].metric], MetricKind::kValue, time_ms));
  KV_RETURN_IF_ERROR(CheckNumber(value));
  points_.push_back({.series = series, .time = time_ms, .number = value});
  return absl::OkStatus();
}

absl::Status Batch::AddDistinct(size_t metric, int64_t time_ms, Segments segments,
                                std::span<const std::string> members) {
  KV_RETURN_IF_ERROR(Check(metric, MetricKind::kDistinct, time_ms, segments));
  HyperLogLog sketch;
  for (const std::string& member : members) sketch.Add(member);
  points_.push_back({.series = SeriesOf(metric, segments),
                     .sketch = static_cast<uint32_t>(sketches_.size()),
                     .time = time_ms});
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
                     .sketch = static_cast<uint32_t>(sketches_.size()),
                     .time = time_ms});
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
