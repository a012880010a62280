#include "cli/reports/json_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "cli/command.h"
#include "cli/reports/json_blocks.h"
#include "cli/reports/moments.h"
#include "cli/reports/point_value.h"
#include "reports/json_times.h"

namespace kvstore::cli {
namespace {

/// If there are more metrics, the loader forgets those that the present block does not name, because each
/// batch has a list of all that are known.
constexpr size_t kMaxKnownMetrics = 10'000;

absl::Status Invalid(std::string_view field, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", field, problem));
}

using Kind = FlatValue::Kind;

/// The metric's name in a line that is one point; nullopt for another line.
std::optional<std::string_view> MetricOfOnePoint(const FlatJson& json, const FlatValue& line) {
  std::optional<std::string_view> metric;
  bool has_value = false;
  for (const FlatField& field : json.Fields(line)) {
    if (field.name == "metric") {
      if (field.value.kind != Kind::kString) return std::nullopt;
      metric = field.value.text;
    } else if (field.name == "value" || field.name == "values") {
      has_value = true;
    }
  }
  return has_value ? metric : std::nullopt;
}

/// The metrics of a report as far as lines name them.
class KnownMetrics {
 public:
  KnownMetrics(reports::Reports& reports, const LoadOptions& options)
      : reports_(reports), options_(options), info_(OrFail(reports.Info(options.report, {}))) {}

  const reports::ReportInfo& info() const { return info_; }
  bool IsOther(std::string_view field) const {
    return field == "time" || info_.KeyNumber(field) ||
           std::find(options_.ignored.begin(), options_.ignored.end(), field) != options_.ignored.end();
  }
  /// The index of a metric that exists; nullopt if there is none of that name.
  std::optional<size_t> Find(std::string_view metric) const {
    // Neighbours mostly name the same metrics in the same order.
    const std::vector<reports::Metric>& metrics = info_.metrics;
    if (!metrics.empty()) {
      for (const size_t guess : {last_, (last_ + 1) % metrics.size()}) {
        if (metrics[guess].name == metric) return last_ = guess;
      }
    }
    const auto found = indexes_.find(absl::string_view(metric.data(), metric.size()));
    if (found == indexes_.end()) return std::nullopt;
    return last_ = found->second;
  }

  /// Asks for the metrics of the lines of a block; returns whether info() has others than before. Throws
  /// Failure.
  bool Learn(const JsonBlock& block) {
    std::set<std::string, std::less<>> unknown;
    EachName(block, [&](std::string_view name) {
      if (!Find(name) && !missing_.contains(name) && !unknown.contains(name)) unknown.emplace(name);
    });
    if (unknown.empty()) return false;
    const bool forgets = info_.metrics.size() + unknown.size() > kMaxKnownMetrics;
    if (forgets) {
      Forget();
      EachName(block, [&](std::string_view name) {
        if (!unknown.contains(name)) unknown.emplace(name);
      });
    }
    reports::ReportInfo found =
        OrFail(reports_.Info(options_.report, std::vector<std::string>(unknown.begin(), unknown.end())));
    for (reports::Metric& metric : found.metrics) {
      indexes_.emplace(metric.name, info_.metrics.size());
      info_.metrics.push_back(std::move(metric));
    }
    for (const std::string& name : unknown) {
      if (!indexes_.contains(name)) missing_.insert(name);
    }
    return forgets || !found.metrics.empty();
  }

 private:
  void Forget() {
    info_.metrics.clear();
    indexes_.clear();
    missing_.clear();
    last_ = 0;
  }

  /// Calls `take` with each name in a block that may be a metric's.
  template <typename Take>
  void EachName(const JsonBlock& block, const Take& take) const {
    const auto offer = [&](std::string_view name) {
      // A longer name is none of a metric's, and asking for it would be refused.
      if (!name.empty() && name.size() <= reports::kMaxMetricNameBytes) take(name);
    };
    for (const JsonLine& line : block.lines) {
      if (!line.json.ok() || line.json->kind != Kind::kObject) continue;
      if (const auto metric = MetricOfOnePoint(block.json, *line.json)) {
        offer(*metric);
        continue;
      }
      for (const FlatField& field : block.json.Fields(*line.json)) {
        if (!IsOther(field.name)) offer(field.name);
      }
    }
  }

  reports::Reports& reports_;
  const LoadOptions& options_;
  reports::ReportInfo info_;
  absl::flat_hash_map<std::string, size_t> indexes_;  // of info_.metrics, by name
  std::set<std::string, std::less<>> missing_;        // names that are none of a metric
  mutable size_t last_ = 0;                           // the index that Find has returned last
};

/// Turns lines into points.
class LineToPoints {
 public:
  LineToPoints(const KnownMetrics& metrics, const LoadOptions& options)
      : metrics_(metrics), times_(options.zone), segments_(metrics.info().keys.size()) {}

  /// Adds all points of a line, or none and says why.
  ///
  /// json  has the line's values.
  absl::Status Read(const FlatJson& json, const absl::StatusOr<FlatValue>& line, LoadTarget& target) {
    if (!line.ok()) return line.status();
    if (line->kind != Kind::kObject) return absl::InvalidArgumentError("the line must be an object");
    used_ = 0;
    std::fill(segments_.begin(), segments_.end(), std::nullopt);
    if (auto status = ReadTime(json.Find(*line, "time")); !status.ok()) return status;
    const auto metric = MetricOfOnePoint(json, *line);
    if (auto status = metric ? ReadOne(json, *line, *metric) : ReadMany(json, *line); !status.ok())
      return status;
    reports::Batch& batch = target.BatchFor(used_);
    for (size_t i = 0; i < used_; ++i) {
      // A wrong time or segment is wrong for the first of the points, before one is added.
      if (auto status = AddPoint(batch, time_, segments_, values_[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadTime(const FlatValue* time) {
    if (time == nullptr) return Invalid("time", "missing");
    if (time->kind == Kind::kInteger && time->integer >= 0 && time->integer <= reports::kMaxTimeMs) {
      time_ = time->integer;
      return absl::OkStatus();
    }
    if (time->kind != Kind::kString) return Invalid("time", reports::kTimeProblem);
    const auto read = times_.Read(time->text);
    if (!read.ok()) return Invalid("time", std::string(read.status().message()));
    time_ = *read;
    return absl::OkStatus();
  }

  absl::Status ReadSegment(uint32_t key, const FlatValue& value) {
    if (value.kind != Kind::kString)
      return Invalid(metrics_.info().keys[key].name, "a segment value must be a string");
    segments_[key] = value.text;
    return absl::OkStatus();
  }

  absl::Status ReadSegments(const FlatJson& json, const FlatValue& segments) {
    if (segments.kind != Kind::kObject)
      return Invalid("segments", "must be an object: {\"country\": \"US\"}");
    for (const FlatField& segment : json.Fields(segments)) {
      const auto number = metrics_.info().KeyNumber(segment.name);
      if (!number) {
        return Invalid("segments", fmt::format("report '{}' has no segment key '{}'", metrics_.info().name,
                                               segment.name));
      }
      if (auto status = ReadSegment(*number, segment.value); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadValue(std::string_view name, const FlatJson& json, const FlatValue& value) {
    const auto metric = metrics_.Find(name);
    if (!metric) {
      return absl::NotFoundError(
          fmt::format("report '{}' has no segment key and no metric '{}'", metrics_.info().name, name));
    }
    if (used_ == values_.size()) values_.emplace_back();
    PointValue& point = values_[used_++];
    point.metric = *metric;
    const auto status = ReadJsonValue(json, value, metrics_.info().metrics[*metric].kind, point);
    return status.ok() ? status : Invalid(name, std::string(status.message()));
  }

  absl::Status ReadOne(const FlatJson& json, const FlatValue& line, std::string_view metric) {
    const FlatValue* value = nullptr;
    for (const FlatField& field : json.Fields(line)) {
      if (field.name == "segments") {
        if (auto status = ReadSegments(json, field.value); !status.ok()) return status;
      } else if (field.name == "value" || field.name == "values") {
        if (value != nullptr) return Invalid("value", "give either 'value' or 'values'");
        value = &field.value;
      } else if (field.name != "metric" && field.name != "time") {
        return Invalid(field.name, "unknown field");
      }
    }
    return ReadValue(metric, json, *value);
  }

  absl::Status ReadMany(const FlatJson& json, const FlatValue& line) {
    for (const auto& [name, value] : json.Fields(line)) {
      if (const auto key = metrics_.info().KeyNumber(name)) {
        if (auto status = ReadSegment(*key, value); !status.ok()) return status;
      } else if (!metrics_.IsOther(name) && value.kind != Kind::kNull) {
        if (auto status = ReadValue(name, json, value); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  const KnownMetrics& metrics_;
  PointTimes times_;
  int64_t time_ = 0;
  std::vector<std::optional<std::string_view>> segments_;
  std::vector<PointValue> values_;  // the first used_ are of this line
  size_t used_ = 0;
};

/// Describes everything, apart from their text, that decides which points the lines are.
std::string Layout(const reports::ReportInfo& info, const LoadOptions& options) {
  std::string layout = fmt::format("jsonl zone={}", options.zone.name());
  for (const reports::SegmentKey& key : info.keys) layout += fmt::format(" key {}", key.name);
  return layout;
}

}  // namespace

void LoadJsonLines(reports::Reports& reports, const LoadOptions& options, int file, LoadTarget& target,
                   const std::function<void(uint64_t)>& progress) {
  JsonBlockReader reader(file);
  KnownMetrics metrics(reports, options);
  LineToPoints to_points(metrics, options);
  target.Use(metrics.info(), Layout(metrics.info(), options));
  JsonBlock block;
  while (!block.is_last) {
    block = OrFail(reader.Next(std::move(block)));
    if (metrics.Learn(block)) target.Use(metrics.info(), Layout(metrics.info(), options));
    for (const JsonLine& line : block.lines) {
      if (const absl::Status status = to_points.Read(block.json, line.json, target); status.ok()) {
        target.Done(line.number, line.offset, line.text);
      } else {
        target.Reject(line.number, line.offset, line.text, std::string(status.message()));
      }
    }
    target.Blank(block.blank);
    progress(block.end);
  }
  target.Finish();
}

}  // namespace kvstore::cli
