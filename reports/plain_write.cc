#include "reports/plain_write.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <span>

#include "reports/json_times.h"

namespace kvstore::reports {
namespace {

using PlainKind = FlatValue::Kind;

/// The fields of a point, and a bit for each in the same order.
constexpr std::string_view kPointFields[] = {"metric", "time", "value", "segments", "values"};
constexpr unsigned kNeededBits = 0b00011;
constexpr unsigned kValueBits = 0b10100;  // of which a point has one

/// Texts beyond this are left to the tree, so that 32 bits are enough to count what they have.
constexpr size_t kMaxTextBytes = size_t{2} << 30;

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

/// The names of the fields that were read of a request.
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
  if (text.size() > kMaxTextBytes) return std::nullopt;
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
      flat.Clear();
      write.id_ = IdOf(json.Value(flat));
      if (!write.id_) return std::nullopt;
    } else if (name == "points") {
      json.Expect('[');
      if (json.Take(']')) continue;
      do {
        if (!write.ReadPoint(json, flat)) return std::nullopt;
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

bool PlainWrite::ReadPoint(PlainJson& json, FlatJson& flat) {
  Point point;
  unsigned seen = 0;
  json.Expect('{');
  do {
    const std::string_view name = json.String();
    json.Expect(':');
    const auto* const known = std::find(std::begin(kPointFields), std::end(kPointFields), name);
    const unsigned bit = 1U << (known - std::begin(kPointFields));
    if (known == std::end(kPointFields) || (seen & bit) != 0) return false;
    seen |= bit;
    if (!ReadField(name, json, flat, point)) return false;
  } while (json.Take(','));
  json.Expect('}');
  points_.push_back(point);
  return !json.failed() && (seen & kNeededBits) == kNeededBits && std::has_single_bit(seen & kValueBits);
}

bool PlainWrite::ReadField(std::string_view name, PlainJson& json, FlatJson& flat, Point& point) {
  if (name == "metric") {
    point.metric = MetricOf(json.String());
    return !json.failed();
  }
  if (name == "segments") return ReadSegments(json, point.segments);
  flat.Clear();
  const FlatValue value = json.Value(flat);
  if (name == "time") {
    const auto time = TimeOf(value);
    point.time = time.value_or(0);
    return time.has_value();
  }
  if (name == "value") {
    const auto number = NumberFromFlat(value);
    point.number = number.value_or(Number());
    return number.has_value();
  }
  if (value.kind != PlainKind::kArray) return false;
  point.many = true;
  const auto elements = flat.Elements(value);
  point.values.begin = static_cast<uint32_t>(values_.size());
  values_.insert(values_.end(), elements.begin(), elements.end());
  point.values.end = static_cast<uint32_t>(values_.size());
  return true;
}

bool PlainWrite::ReadSegments(PlainJson& json, Range& segments) {
  segments.begin = static_cast<uint32_t>(segments_.size());
  json.Expect('{');
  if (!json.Take('}')) {
    do {
      const std::string_view name = json.String();
      json.Expect(':');
      const std::string_view value = json.String();
      const auto first = segments_.begin() + segments.begin;
      if (std::any_of(first, segments_.end(), [&](const auto& other) { return other.first == name; }))
        return false;
      // A report has no more keys, so that looking at each of them takes no time.
      if (segments_.size() - segments.begin == kMaxSegmentKeys) return false;
      segments_.emplace_back(name, value);
    } while (json.Take(','));
    json.Expect('}');
  }
  segments.end = static_cast<uint32_t>(segments_.size());
  ShareSegments(segments);
  return !json.failed();
}

void PlainWrite::ShareSegments(Range& segments) {
  if (points_.empty()) return;
  const Range& before = points_.back().segments;
  const auto all = segments_.begin();
  if (!std::equal(all + segments.begin, all + segments.end, all + before.begin, all + before.end)) return;
  segments_.resize(segments.begin);
  segments = before;
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
  std::optional<uint32_t> series;  // of the point before, if that has a single value
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    const bool same = i > 0 && point.segments == points_[i - 1].segments;
    if (!same && !FillSegments(info, point.segments, segments)) return std::nullopt;
    const std::optional<size_t> metric = metrics[point.metric];
    if (!metric) return std::nullopt;
    if (point.many) {
      series.reset();
      if (!AddMany(batch, *metric, point, segments)) return std::nullopt;
      continue;
    }
    if (!same || !series || point.metric != points_[i - 1].metric) {
      const auto found = batch.FindSeries(*metric, segments);
      if (!found.ok()) return std::nullopt;
      series = *found;
    }
    if (!batch.AddTo(*series, point.time, point.number).ok()) return std::nullopt;
  }
  return batch;
}

bool PlainWrite::FillSegments(const ReportInfo& info, const Range& range,
                              std::vector<std::optional<std::string_view>>& segments) const {
  std::fill(segments.begin(), segments.end(), std::nullopt);
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const auto key = info.KeyNumber(segments_[i].first);
    if (!key) return false;
    segments[*key] = segments_[i].second;
  }
  return true;
}

bool PlainWrite::AddMany(Batch& batch, size_t metric, const Point& point, Batch::Segments segments) const {
  const auto values = std::span(values_).subspan(point.values.begin, point.values.end - point.values.begin);
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
