#include "cli/reports/definitions.h"

#include <fmt/format.h>

#include <string>

#include "reports/steps.h"

namespace kvstore::cli {

absl::StatusOr<reports::SegmentKey> ParseSegmentKey(std::string_view text) {
  const size_t equals = text.find('=');
  reports::SegmentKey key{.name = std::string(text.substr(0, equals))};
  if (equals != std::string_view::npos) key.default_value = std::string(text.substr(equals + 1));
  if (key.name.empty()) {
    return absl::InvalidArgumentError(fmt::format("'{}' has no name: give NAME, or NAME=DEFAULT", text));
  }
  return key;
}

absl::StatusOr<reports::Metric> ParseMetric(std::string_view text) {
  const size_t colon = text.rfind(':');
  reports::Metric metric{.name = std::string(text.substr(0, colon))};
  if (colon != std::string_view::npos) {
    const std::string_view name = text.substr(colon + 1);
    const auto kind = reports::ParseMetricKind(name);
    if (!kind) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}': there is no kind '{}'; there are value, distinct and distribution (a name that has a ':' "
          "needs its kind: {}:value)",
          text, name, text));
    }
    metric.kind = *kind;
  }
  if (metric.name.empty()) {
    return absl::InvalidArgumentError(fmt::format("'{}' has no name: give NAME, or NAME:KIND", text));
  }
  return metric;
}

absl::StatusOr<reports::Rollup> ParseRollup(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}': give the segment keys that are kept and the step, KEY,KEY@STEP: carrier,origin@1d, or @1d",
        text));
  }
  const auto step = reports::ParseStep(text.substr(at + 1));
  if (!step.ok()) return step.status();
  const auto length = reports::FixedLength(*step);
  if (!length) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': the step must have a fixed length: ms, s, m, h, d or w", text));
  }
  reports::Rollup rollup{.step_ms = static_cast<uint64_t>(*length)};
  for (std::string_view rest = text.substr(0, at); !rest.empty();) {
    const size_t comma = rest.find(',');
    rollup.keys.emplace_back(rest.substr(0, comma));
    if (rollup.keys.back().empty() || comma + 1 == rest.size()) {
      return absl::InvalidArgumentError(fmt::format("'{}': a segment key has no name", text));
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return rollup;
}

}  // namespace kvstore::cli
