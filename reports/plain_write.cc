#include "reports/plain_write.h"

#include <algorithm>
#include <set>
#include <span>

#include "json/plain_json.h"
#include "reports/json_times.h"

namespace kvstore::reports {
namespace {

using PlainKind = FlatValue::Kind;

/// The time of a point as ReadTime reads it.
std::optional<int64_t> TimeOf(const FlatValue& value) {
  if (value.kind == PlainKind::kInteger && value.integer >= 0 && value.integer <= kMaxTimeMs)
    return value.integer;
  if (value.kind != PlainKind::kString) return std::nullopt;
  const auto time = ParseTimeText(value.text, absl::UTCTimeZone());
  if (!time.ok()) return std::nullopt;
  return *time;
}

/// The "id" of a request; none for a kind that only a tree can give back as it was.
std::optional<Json> IdOf(const FlatValue& value) {
  std::optional<Json> id;
  if (value.kind == PlainKind::kString) id.emplace(std::string(value.text));
  if (value.kind == PlainKind::kInteger) id.emplace(value.integer);
  return id;
}

/// What a request has, each at most once.
class SeenFields {
 public:
  /// False for a field that was there before.
  bool Add(std::string_view name) { return names_.insert(name).second; }
  bool Has(std::string_view name) const { return names_.contains(name); }

 private:
  std::set<std::string_view> names_;
};

}  // namespace

std::optional<PlainWrite> PlainWrite::Read(std::string_view text) {
  PlainWrite write;
  write.dataset_ = kDefaultDataset;
  PlainJson json(text);
  FlatJson flat;
  SeenFields seen;
  json.Expect('{');
  do {
    const std::string_view name = json.String();
    json.Expect(':');
    if (!seen.Add(name)) return std::nullopt;
    if (name == "op") {
      if (json.String() != "write_points") return std::nullopt;
    } else if (name == "report") {
      write.report_ = json.String();
    } else if (name == "dataset") {
      write.dataset_ = json.String();
    } else if (name == "batch") {
      write.options_.batch = json.String();
    } else if (name == "add") {
      write.options_.add = json.Bool();
    } else if (name == "id") {
      write.id_ = IdOf(json.Value(flat));
      if (!write.id_) return std::nullopt;
    } else if (name == "points") {
      json.Expect('[');
      if (json.Take(']')) continue;
      do {
        flat.Clear();
        const FlatValue point = json.Value(flat);
        if (json.failed() || !write.ReadPoint(flat, point)) return std::nullopt;
      } while (json.Take(','));
      json.Expect(']');
    } else {
      return std::nullopt;
    }
  } while (json.Take(','));
  json.Expect('}');
  if (!json.IsWhole() || !seen.Has("op") || !seen.Has("report") || !seen.Has("points")) return std::nullopt;
  return write;
}

bool PlainWrite::ReadPoint(const FlatJson& flat, const FlatValue& object) {
  if (object.kind != PlainKind::kObject) return false;
  Point point{.segments_begin = segments_.size(), .values_begin = values_.size()};
  bool has_metric = false;
  bool has_time = false;
  bool has_value = false;
  for (const FlatField& field : flat.Fields(object)) {
    const FlatValue& value = field.value;
    if (field.name == "metric") {
      has_metric = value.kind == PlainKind::kString;
      if (has_metric) point.metric = MetricOf(value.text);
    } else if (field.name == "time") {
      const auto time = TimeOf(value);
      has_time = time.has_value();
      point.time = time.value_or(0);
    } else if (field.name == "segments") {
      if (!ReadSegments(flat, value)) return false;
    } else if (field.name == "value") {
      const auto number = NumberFromFlat(value);
      if (!number || has_value) return false;
      has_value = true;
      point.number = *number;
    } else if (field.name == "values") {
      if (value.kind != PlainKind::kArray || has_value) return false;
      has_value = point.many = true;
      const auto elements = flat.Elements(value);
      values_.insert(values_.end(), elements.begin(), elements.end());
    } else {
      return false;
    }
  }
  point.segments_end = segments_.size();
  point.values_end = values_.size();
  points_.push_back(point);
  return has_metric && has_time && has_value;
}

bool PlainWrite::ReadSegments(const FlatJson& flat, const FlatValue& segments) {
  if (segments.kind != PlainKind::kObject) return false;
  for (const FlatField& segment : flat.Fields(segments)) {
    if (segment.value.kind != PlainKind::kString) return false;
    segments_.emplace_back(segment.name, segment.value.text);
  }
  return true;
}

uint32_t PlainWrite::MetricOf(std::string_view name) {
  // Neighbours are mostly of one metric.
  if (!points_.empty() && metrics_[points_.back().metric] == name) return points_.back().metric;
  const auto [at, is_new] = metric_indexes_.emplace(name, static_cast<uint32_t>(metrics_.size()));
  if (is_new) metrics_.push_back(name);
  return at->second;
}

std::optional<Batch> PlainWrite::ToBatch(const ReportInfo& info) const {
  std::vector<std::optional<size_t>> metrics(metrics_.size());  // for each its index in the report
  for (size_t i = 0; i < info.metrics.size(); ++i) {
    const auto named = metric_indexes_.find(info.metrics[i].name);
    if (named != metric_indexes_.end()) metrics[named->second] = i;
  }
  Batch batch(info);
  std::vector<std::optional<std::string_view>> segments(info.keys.size());
  for (const Point& point : points_) {
    std::fill(segments.begin(), segments.end(), std::nullopt);
    for (size_t i = point.segments_begin; i < point.segments_end; ++i) {
      const auto key = info.KeyNumber(segments_[i].first);
      if (!key) return std::nullopt;
      segments[*key] = segments_[i].second;
    }
    const std::optional<size_t> metric = metrics[point.metric];
    if (!metric || !AddTo(batch, *metric, point, segments)) return std::nullopt;
  }
  return batch;
}

bool PlainWrite::AddTo(Batch& batch, size_t metric, const Point& point, Batch::Segments segments) const {
  if (!point.many) return batch.Add(metric, point.time, segments, point.number).ok();
  const auto values = std::span(values_).subspan(point.values_begin, point.values_end - point.values_begin);
  if (batch.info().metrics[metric].kind == MetricKind::kDistinct) {
    std::vector<std::string> members;
    for (const FlatValue& value : values) {
      if (value.kind != PlainKind::kString) return false;
      members.emplace_back(value.text);
    }
    return batch.AddDistinct(metric, point.time, segments, members).ok();
  }
  std::vector<double> numbers;
  for (const FlatValue& value : values) {
    if (value.kind != PlainKind::kInteger && value.kind != PlainKind::kReal) return false;
    numbers.push_back(value.kind == PlainKind::kInteger ? static_cast<double>(value.integer) : value.real);
  }
  return batch.AddDistribution(metric, point.time, segments, numbers).ok();
}

std::optional<JsonAnswer> PlainWrite::CarryOut(const ReportsOf& reports_of) const {
  const auto reports = reports_of(dataset_);
  if (!reports.ok()) return reports.status();
  const auto info = (*reports)->Info(report_, {metrics_.begin(), metrics_.end()});
  if (!info.ok()) return info.status();
  const auto batch = ToBatch(*info);
  if (!batch) return std::nullopt;
  const auto written = (*reports)->Write(*batch, options_);
  if (!written.ok()) return written.status();
  return JsonAnswer(Json{{"written", *written}});
}

}  // namespace kvstore::reports
