#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reports/report_types.h"

/// The columns of a report's row of metadata and their values, as they are stored (metadata.h).
namespace kvstore::reports {

inline constexpr char kInfoColumn[] = "info";
inline constexpr char kNextMetric[] = "next/metric";
inline constexpr char kNextKey[] = "next/key";
inline constexpr std::string_view kMetricPrefix = "metric/";

std::string KeyColumn(uint32_t key);
std::string MetricColumn(std::string_view metric);
std::string ValueColumn(uint32_t key, uint32_t id);
std::string IdColumn(uint32_t key, std::string_view value);
std::string NextValueColumn(uint32_t key);

std::string SettingsToText(const ReportSettings& settings);
absl::StatusOr<ReportSettings> SettingsFromText(std::string_view text);
std::string KeyToText(const SegmentKey& key);
absl::StatusOr<SegmentKey> KeyFromText(std::string_view text);
std::string MetricToText(const Metric& metric);
/// The name is that of the column.
absl::StatusOr<Metric> MetricFromText(std::string_view name, std::string_view text);
/// A stored number; DATA_LOSS unless it is one of 32 bits.
absl::StatusOr<uint32_t> NumberFromText(std::string_view text);

/// How often a conditional put is tried again after somebody else was first.
inline constexpr int kMaxPutAttempts = 1'000;
/// UNAVAILABLE: all those attempts failed.
absl::Status TooBusy(std::string_view report);

}  // namespace kvstore::reports
