#include "reports/metadata_columns.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::reports {
namespace {

constexpr uint64_t kFormat = 1;

absl::Status Damaged(std::string_view what, const absl::Status& why) {
  return absl::DataLossError(
      fmt::format("the stored {} of a report does not decode: {}", what, std::string(why.message())));
}

}  // namespace

std::string KeyColumn(uint32_t key) { return fmt::format("key/{}", key); }
std::string MetricColumn(std::string_view metric) { return std::string(kMetricPrefix).append(metric); }
std::string ValueColumn(uint32_t key, uint32_t id) { return fmt::format("value/{}/{}", key, id); }
std::string IdColumn(uint32_t key, std::string_view value) {
  return fmt::format("id/{}/", key).append(value);
}
std::string NextValueColumn(uint32_t key) { return fmt::format("next/value/{}", key); }

std::string SettingsToText(const ReportSettings& settings) {
  return TextOf(Json{{"format", kFormat},
                     {"id", settings.id},
                     {"resolution_ms", settings.resolution_ms},
                     {"period_s", settings.period_s},
                     {"salts", settings.salts},
                     {"retention_ms", settings.retention_ms}});
}

absl::StatusOr<ReportSettings> SettingsFromText(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return Damaged("settings", json.status());
  JsonFields fields(*json, "");
  fields.Uint("format", kFormat, kFormat);
  ReportSettings settings;
  settings.id = static_cast<uint32_t>(fields.Uint("id", 1, UINT32_MAX));
  settings.resolution_ms = fields.Uint("resolution_ms", 1, kMaxTimeMs);
  settings.period_s = fields.Uint("period_s", 1, kMaxTimeMs);
  settings.salts = static_cast<uint32_t>(fields.Uint("salts", 1, kMaxSalts));
  settings.retention_ms = fields.Uint("retention_ms", 0, kMaxTimeMs);
  if (auto status = fields.Finish(); !status.ok()) return Damaged("settings", status);
  return settings;
}

std::string KeyToText(const SegmentKey& key) {
  Json json{{"name", key.name}};
  if (key.default_value) json["default"] = *key.default_value;
  return TextOf(json);
}

absl::StatusOr<SegmentKey> KeyFromText(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return Damaged("segment key", json.status());
  JsonFields fields(*json, "");
  SegmentKey key{.name = fields.String("name"), .default_value = fields.OptionalString("default")};
  if (auto status = fields.Finish(); !status.ok()) return Damaged("segment key", status);
  return key;
}

std::string MetricToText(const Metric& metric) {
  return TextOf(Json{{"id", metric.id}, {"kind", std::string(Name(metric.kind))}});
}

absl::StatusOr<Metric> MetricFromText(std::string_view name, std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return Damaged("metric", json.status());
  JsonFields fields(*json, "");
  Metric metric{.id = static_cast<uint32_t>(fields.Uint("id", 0, UINT32_MAX)), .name = std::string(name)};
  const auto kind = ParseMetricKind(fields.String("kind"));
  if (!kind) fields.Fail("kind", "there is no such kind");
  if (auto status = fields.Finish(); !status.ok()) return Damaged("metric", status);
  metric.kind = *kind;
  return metric;
}

absl::StatusOr<uint32_t> NumberFromText(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::DataLossError("a stored number of a report does not decode");
  }
  return number;
}

absl::Status TooBusy(std::string_view report) {
  return absl::UnavailableError(
      fmt::format("report '{}': others changed it {} times in a row while this call tried to; try again",
                  report, kMaxPutAttempts));
}

}  // namespace kvstore::reports
