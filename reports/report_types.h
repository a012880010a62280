#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/rollup_types.h"

/// The words of the time series: a report, its segment keys and its metrics.
namespace kvstore::reports {

/// The kind of data that a metric holds. Values are stored: never renumber.
enum class MetricKind : uint8_t {
  kValue = 1,         ///< A number.
  kDistinct = 2,      ///< A set whose members are counted once each, as a HyperLogLog.
  kDistribution = 3,  ///< Many numbers, for percentiles, as a sketch with 1 % relative error.
};

/// "value", "distinct" or "distribution".
std::string_view Name(MetricKind kind);
std::optional<MetricKind> ParseMetricKind(std::string_view name);

inline constexpr size_t kMaxReportNameBytes = 256;
inline constexpr size_t kMaxMetricNameBytes = 512;
inline constexpr size_t kMaxSegmentKeyBytes = 256;
inline constexpr size_t kMaxSegmentValueBytes = 512;
inline constexpr uint32_t kMaxSegmentKeys = 16;
inline constexpr uint32_t kMaxSalts = 64;
/// The last millisecond of the year 9999; times of points lie between 0 and this.
inline constexpr int64_t kMaxTimeMs = 253'402'300'799'999;

/// A segment key: one of the dimensions of a report.
struct SegmentKey {
  std::string name;
  /// The value of points that do not name this key, and of all points older than the key; none: each point
  /// must name it. A key that is added later has one.
  std::optional<std::string> default_value;
  friend bool operator==(const SegmentKey&, const SegmentKey&) = default;
};

struct Metric {
  uint32_t id = 0;  ///< Given by the store; unique in the report.
  std::string name;
  MetricKind kind = MetricKind::kValue;
  friend bool operator==(const Metric&, const Metric&) = default;
};

/// The part of a report that does not depend on which metrics it has.
struct ReportSettings {
  uint32_t id = 0;                ///< Given by the store; unique in the dataset, never used again.
  uint64_t resolution_ms = 1000;  ///< Times of points are multiples of this.
  /// The stretch of time that one row holds; a multiple of the resolution. Fixed for good.
  uint64_t period_s = 30 * 86'400;
  uint32_t salts = 4;         ///< Rows for each period, 1..kMaxSalts. Fixed for good.
  uint64_t retention_ms = 0;  ///< Points older than this are gone; 0: they stay.
  friend bool operator==(const ReportSettings&, const ReportSettings&) = default;
};

/// Which metrics of a report are listed: a page of those that begin with `prefix` and come after `after`.
struct MetricListing {
  std::string prefix;
  std::string after;    ///< The last name of the page before; empty for the first page.
  size_t limit = 1000;  ///< The size of the page, 1..kMaxListedMetrics.
};
inline constexpr size_t kMaxListedMetrics = 5'000;

/// Some metrics of a report, ascending by the bytes of their names.
struct MetricPage {
  std::vector<Metric> metrics;
  bool more = false;  ///< Others follow the last of these.
};

/// A report as far as it was asked for.
struct ReportInfo {
  std::string name;
  ReportSettings settings;
  std::vector<SegmentKey> keys;  ///< In the order of their numbers, which chunks refer to.
  std::vector<Metric> metrics;   ///< Those that were asked for and exist.
  std::vector<Rollup> rollups;   ///< All that are declared, by ID.

  /// The number of the segment key of that name; nullopt if there is none.
  std::optional<uint32_t> KeyNumber(std::string_view key) const;
  /// The metric of that name among those that were asked for; null if it is not there.
  const Metric* FindMetric(std::string_view metric) const;
};

}  // namespace kvstore::reports
