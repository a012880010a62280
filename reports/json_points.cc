#include "reports/json_points.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "json/json_fields.h"
#include "reports/json_times.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// The metrics that the points name, each once.
std::vector<std::string> MetricsOf(const std::vector<Json>& points) {
  std::set<std::string> names;
  for (const Json& point : points) {
    if (!point.is_object()) continue;
    const auto metric = point.find("metric");
    if (metric != point.end() && metric->is_string()) names.insert(metric->get<std::string>());
  }
  return {names.begin(), names.end()};
}

/// Puts the path of a point before a message about it.
absl::Status At(const absl::Status& status, size_t index) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("points[{}].{}", index, std::string(status.message())));
}

class PointReader {
 public:
  explicit PointReader(const ReportInfo& info) : info_(info), batch_(info) {
    for (size_t i = 0; i < info.metrics.size(); ++i) metrics_[info.metrics[i].name] = i;
  }

  absl::Status Read(const Json& json, size_t index) {
    JsonFields fields(json, fmt::format("points[{}].", index));
    const std::string name = fields.String("metric");
    const int64_t time = ReadTime(fields, "time", absl::UTCTimeZone());
    ReadSegments(fields);
    const Json* value = fields.Find("value");
    const Json* values = fields.Find("values");
    KV_RETURN_IF_ERROR(fields.Finish());
    const auto metric = metrics_.find(name);
    if (metric == metrics_.end()) {
      return absl::NotFoundError(fmt::format(
          "points[{}].metric: report '{}' has no metric '{}'; add it first", index, info_.name, name));
    }
    if ((value == nullptr) == (values == nullptr)) {
      return At(absl::InvalidArgumentError("value: give either 'value' or 'values'"), index);
    }
    if (value != nullptr) {
      const auto number = NumberFromJson(*value);
      if (!number) {
        return At(absl::InvalidArgumentError(fmt::format("value: {}", kNumberProblem)), index);
      }
      return At(batch_.Add(metric->second, time, segments_, *number), index);
    }
    return At(ReadMany(metric->second, time, *values), index);
  }

  Batch Take() && { return std::move(batch_); }

 private:
  void ReadSegments(JsonFields& fields) {
    segments_.assign(info_.keys.size(), std::nullopt);
    const Json* json = fields.Find("segments");
    if (json == nullptr) return;
    if (!json->is_object()) return fields.Fail("segments", "must be an object: {\"country\": \"US\"}");
    for (const auto& [key, value] : json->items()) {
      const auto number = info_.KeyNumber(key);
      if (!number) {
        fields.Fail("segments", fmt::format("report '{}' has no segment key '{}'", info_.name, key));
      } else if (!value.is_string()) {
        fields.Fail("segments", fmt::format("the value of '{}' must be a string", key));
      } else {
        segments_[*number] = value.get_ref<const std::string&>();
      }
    }
  }

  absl::Status ReadMany(size_t metric, int64_t time, const Json& values) {
    if (!values.is_array()) return absl::InvalidArgumentError("values: must be an array");
    if (info_.metrics[metric].kind == MetricKind::kDistinct) {
      std::vector<std::string> members;
      for (const Json& value : values) {
        if (!value.is_string())
          return absl::InvalidArgumentError("values: of a distinct metric must be strings");
        members.push_back(value.get<std::string>());
      }
      return batch_.AddDistinct(metric, time, segments_, members);
    }
    std::vector<double> numbers;
    for (const Json& value : values) {
      if (!value.is_number()) return absl::InvalidArgumentError("values: of a distribution must be numbers");
      numbers.push_back(value.get<double>());
    }
    return batch_.AddDistribution(metric, time, segments_, numbers);
  }

  const ReportInfo& info_;
  Batch batch_;
  std::map<std::string, size_t> metrics_;
  std::vector<std::optional<std::string_view>> segments_;
};

}  // namespace

absl::StatusOr<Batch> ReadPoints(Reports& reports, const std::string& report,
                                 const std::vector<Json>& points) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, reports.Info(report, MetricsOf(points)));
  PointReader reader(info);
  for (size_t i = 0; i < points.size(); ++i) KV_RETURN_IF_ERROR(reader.Read(points[i], i));
  return std::move(reader).Take();
}

}  // namespace kvstore::reports
