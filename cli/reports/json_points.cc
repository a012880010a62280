#include "cli/reports/json_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

/// Returns whether a line is one point with its metric by name.
bool IsOnePoint(const Json& json) {
  const auto metric = json.find("metric");
  return metric != json.end() && metric->is_string() && (json.contains("value") || json.contains("values"));
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
    const auto found = indexes_.find(metric);
    if (found == indexes_.end()) return std::nullopt;
    return found->second;
  }

  /// Asks for the metrics of these lines; returns whether info() has others than before. Throws Failure.
  bool Learn(const std::vector<JsonLine>& lines) {
    std::set<std::string> names;
    for (const JsonLine& line : lines) AddNames(line, names);
    std::vector<std::string> unknown = NotKnown(names);
    if (unknown.empty()) return false;
    const bool forgets = info_.metrics.size() + unknown.size() > kMaxKnownMetrics;
    if (forgets) {
      info_.metrics.clear();
      indexes_.clear();
      missing_.clear();
      unknown.assign(names.begin(), names.end());
    }
    reports::ReportInfo found = OrFail(reports_.Info(options_.report, unknown));
    for (reports::Metric& metric : found.metrics) {
      indexes_.emplace(metric.name, info_.metrics.size());
      info_.metrics.push_back(std::move(metric));
    }
    for (std::string& name : unknown) {
      if (!indexes_.contains(name)) missing_.insert(std::move(name));
    }
    return forgets || !found.metrics.empty();
  }

 private:
  void AddNames(const JsonLine& line, std::set<std::string>& names) const {
    if (!line.json.ok() || !line.json->is_object()) return;
    const auto add = [&](const std::string& name) {
      // A longer name is none of a metric's, and asking for it would be refused.
      if (!name.empty() && name.size() <= reports::kMaxMetricNameBytes) names.insert(name);
    };
    if (IsOnePoint(*line.json)) return add(line.json->at("metric").get_ref<const std::string&>());
    for (const auto& [name, value] : line.json->items()) {
      if (!IsOther(name)) add(name);
    }
  }

  std::vector<std::string> NotKnown(const std::set<std::string>& names) const {
    std::vector<std::string> unknown;
    for (const std::string& name : names) {
      if (!indexes_.contains(name) && !missing_.contains(name)) unknown.push_back(name);
    }
    return unknown;
  }

  reports::Reports& reports_;
  const LoadOptions& options_;
  reports::ReportInfo info_;
  std::map<std::string, size_t, std::less<>> indexes_;  // of info_.metrics, by name
  std::set<std::string> missing_;                       // names that are none of a metric
};

/// Turns lines into points.
class LineToPoints {
 public:
  LineToPoints(const KnownMetrics& metrics, const LoadOptions& options)
      : metrics_(metrics), times_(options.zone), segments_(metrics.info().keys.size()) {}

  /// Adds all points of a line, or none and says why.
  absl::Status Read(const absl::StatusOr<Json>& json, LoadTarget& target) {
    if (!json.ok()) return json.status();
    if (!json->is_object()) return absl::InvalidArgumentError("the line must be an object");
    used_ = 0;
    std::fill(segments_.begin(), segments_.end(), std::nullopt);
    if (auto status = ReadTime(*json); !status.ok()) return status;
    if (auto status = IsOnePoint(*json) ? ReadOne(*json) : ReadMany(*json); !status.ok()) return status;
    reports::Batch& batch = target.BatchFor(used_);
    for (size_t i = 0; i < used_; ++i) {
      // A wrong time or segment is wrong for the first of the points, before one is added.
      if (auto status = AddPoint(batch, time_, segments_, values_[i]); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadTime(const Json& json) {
    const auto time = json.find("time");
    if (time == json.end()) return Invalid("time", "missing");
    if (time->is_number_unsigned() && time->get<uint64_t>() <= static_cast<uint64_t>(reports::kMaxTimeMs)) {
      time_ = static_cast<int64_t>(time->get<uint64_t>());
      return absl::OkStatus();
    }
    if (!time->is_string()) return Invalid("time", reports::kTimeProblem);
    const auto read = times_.Read(time->get_ref<const std::string&>());
    if (!read.ok()) return Invalid("time", std::string(read.status().message()));
    time_ = *read;
    return absl::OkStatus();
  }

  absl::Status ReadSegment(uint32_t key, const Json& value) {
    if (!value.is_string())
      return Invalid(metrics_.info().keys[key].name, "a segment value must be a string");
    segments_[key] = value.get_ref<const std::string&>();
    return absl::OkStatus();
  }

  absl::Status ReadValue(const std::string& name, const Json& json) {
    const auto metric = metrics_.Find(name);
    if (!metric) {
      return absl::NotFoundError(
          fmt::format("report '{}' has no segment key and no metric '{}'", metrics_.info().name, name));
    }
    if (used_ == values_.size()) values_.emplace_back();
    PointValue& value = values_[used_++];
    value.metric = *metric;
    const auto status = ReadJsonValue(json, metrics_.info().metrics[*metric].kind, value);
    return status.ok() ? status : Invalid(name, std::string(status.message()));
  }

  absl::Status ReadOne(const Json& json) {
    for (const auto& [name, value] : json.items()) {
      if (name == "segments") {
        if (!value.is_object()) return Invalid(name, "must be an object: {\"country\": \"US\"}");
        for (const auto& [key, segment] : value.items()) {
          const auto number = metrics_.info().KeyNumber(key);
          if (!number)
            return Invalid(name,
                           fmt::format("report '{}' has no segment key '{}'", metrics_.info().name, key));
          if (auto status = ReadSegment(*number, segment); !status.ok()) return status;
        }
      } else if (name != "metric" && name != "time" && name != "value" && name != "values") {
        return Invalid(name, "unknown field");
      }
    }
    if (json.contains("value") && json.contains("values"))
      return Invalid("value", "give either 'value' or 'values'");
    const auto value = json.find("value");
    return ReadValue(json.at("metric").get_ref<const std::string&>(),
                     value != json.end() ? *value : json.at("values"));
  }

  absl::Status ReadMany(const Json& json) {
    for (const auto& [name, value] : json.items()) {
      if (const auto key = metrics_.info().KeyNumber(name)) {
        if (auto status = ReadSegment(*key, value); !status.ok()) return status;
      } else if (!metrics_.IsOther(name) && !value.is_null()) {
        if (auto status = ReadValue(name, value); !status.ok()) return status;
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
  bool at_end = false;
  while (!at_end) {
    const JsonBlock block = OrFail(reader.Next());
    if (metrics.Learn(block.lines)) target.Use(metrics.info(), Layout(metrics.info(), options));
    for (const JsonLine& line : block.lines) {
      if (const absl::Status status = to_points.Read(line.json, target); status.ok()) {
        target.Done(line.number, line.offset, line.text);
      } else {
        target.Reject(line.number, line.offset, line.text, std::string(status.message()));
      }
    }
    target.Blank(block.blank);
    progress(block.end);
    at_end = block.is_last;
  }
  target.Finish();
}

}  // namespace kvstore::cli
