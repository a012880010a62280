#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reports/report_types.h"

namespace kvstore::bench {

inline constexpr int64_t kDayMs = 86'400'000;
/// Midnight of 2013-01-01, the first day of all points, in ms.
inline constexpr int64_t kFirstDayMs = 1'356'998'400'000;

/// A point as it is made: one day of one series.
struct MadePoint {
  uint32_t metric = 0;  ///< 0 .. PointSet::metrics - 1
  uint32_t series = 0;  ///< 0 .. PointSet::series() - 1; each metric has the same.
  uint32_t day = 0;     ///< 0 .. PointSet::days - 1
  int64_t value = 0;
};

/// The daily integers of a report with the segment keys country, app and gender: each series has a level of
/// its own, lower weekends and noise. A set has the same points in every run.
struct PointSet {
  std::string report;
  uint32_t metrics = 1;
  uint32_t countries = 5;
  uint32_t apps = 5;
  uint32_t genders = 2;
  uint32_t days = 400;

  /// How many series each metric has: one for each combination of segments.
  uint32_t series() const { return countries * apps * genders; }
  uint64_t points() const { return uint64_t{metrics} * series() * days; }
  /// The report, with periods of 30 days and 4 salts.
  reports::ReportInfo info() const;
  /// The numbers of a series' country, app and gender.
  uint32_t country(uint32_t series) const { return series / (apps * genders); }
  uint32_t app(uint32_t series) const { return series / genders % apps; }
  uint32_t gender(uint32_t series) const { return series % genders; }
};

/// The value of a point.
int64_t ValueOf(const PointSet& set, uint32_t metric, uint32_t series, uint32_t day);

/// The names of what a set has, by their numbers.
struct PointNames {
  explicit PointNames(const PointSet& set);
  std::vector<std::string> metrics;  ///< "m0000": the first bytes differ, which DuckDB's zone maps need.
  std::vector<std::string> countries;
  std::vector<std::string> apps;
  std::vector<std::string> genders;
  std::vector<std::string> days;  ///< "2013-01-01"
};

enum class PointOrder {
  kBySeries,  ///< Metric by metric, each series with all of its days: as history is loaded.
  kByDay,     ///< Day by day, all series of all metrics: as a nightly job loads.
};

/// Makes the points of a set, some at a time. Externally synchronised.
class PointMaker {
 public:
  /// The set must outlive this.
  PointMaker(const PointSet& set, PointOrder order) : set_(set), order_(order) {}
  /// Returns the next points, at most so many; none at the end. They are valid until the next call.
  const std::vector<MadePoint>& Next(size_t most);

 private:
  const PointSet& set_;
  const PointOrder order_;
  uint64_t next_ = 0;
  std::vector<MadePoint> made_;
};

}  // namespace kvstore::bench
