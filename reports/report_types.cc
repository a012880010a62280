#include "reports/report_types.h"

namespace kvstore::reports {

std::string_view Name(MetricKind kind) {
  switch (kind) {
    case MetricKind::kValue:
      return "value";
    case MetricKind::kDistinct:
      return "distinct";
    case MetricKind::kDistribution:
      return "distribution";
  }
  return "unknown";
}

std::optional<MetricKind> ParseMetricKind(std::string_view name) {
  for (const MetricKind kind : {MetricKind::kValue, MetricKind::kDistinct, MetricKind::kDistribution}) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::optional<uint32_t> ReportInfo::KeyNumber(std::string_view key) const {
  for (uint32_t i = 0; i < keys.size(); ++i) {
    if (keys[i].name == key) return i;
  }
  return std::nullopt;
}

const Metric* ReportInfo::FindMetric(std::string_view metric) const {
  for (const Metric& known : metrics) {
    if (known.name == metric) return &known;
  }
  return nullptr;
}

}  // namespace kvstore::reports
