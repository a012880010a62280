#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reports/number.h"
#include "reports/report_types.h"

namespace kvstore::reports {

/// Points to be written together. Each is checked when it is added, so that a loader can reject one with its
/// reason and go on. Externally synchronised.
class Batch {
 public:
  /// `info` has the report's keys, and the metrics that points are added of.
  explicit Batch(ReportInfo info);

  /// One value for each segment key, in the order of the report's keys; nullopt stands for the key's default.
  using Segments = std::span<const std::optional<std::string_view>>;

  /// Adds a point of a metric of kind value; a real number must be finite.
  ///
  /// metric  an index of ReportInfo::metrics.
  ///
  /// INVALID_ARGUMENT for a metric of another kind, a time out of range or no multiple of the resolution, a
  /// segment without value or default.
  absl::Status Add(size_t metric, int64_t time_ms, Segments segments, const Number& value);
  /// Finds the series of a metric with these segments, or begins it: at least one point must be added to it
  /// then. For callers who have many points of a series, whose segments are looked at once.
  ///
  /// INVALID_ARGUMENT for a segment without value or default.
  absl::StatusOr<uint32_t> FindSeries(size_t metric, Segments segments);
  /// Adds a point of kind value to a series that FindSeries has returned. Errors as Add.
  absl::Status AddTo(uint32_t series, int64_t time_ms, const Number& value);
  /// A point of a metric of kind distinct: the members of a set.
  absl::Status AddDistinct(size_t metric, int64_t time_ms, Segments segments,
                           std::span<const std::string> members);
  /// A point of a metric of kind distribution: numbers, each finite, at least one.
  absl::Status AddDistribution(size_t metric, int64_t time_ms, Segments segments,
                               std::span<const double> values);
  /// A point of a metric of kind distinct or distribution, as the bytes of its sketch: what sketches() of
  /// another batch has. INVALID_ARGUMENT also for bytes that are no such sketch, and for an empty
  /// distribution.
  absl::Status AddSketch(size_t metric, int64_t time_ms, Segments segments, std::string_view sketch);

  const ReportInfo& info() const { return info_; }
  size_t size() const { return points_.size(); }

  // ---- for the writer ----

  struct Series {
    size_t metric = 0;
    std::vector<uint32_t> values;  // for each key an index of values(key)
  };
  struct Point {
    uint32_t series = 0;
    uint32_t sketch = 0;  // of the other kinds than value: an index of sketches()
    int64_t time = 0;
    Number number;  // of kind value
  };
  const std::vector<Series>& series() const { return series_; }
  const std::vector<Point>& points() const { return points_; }
  const std::vector<std::string>& sketches() const { return sketches_; }
  /// The different values of a segment key in this batch.
  const std::vector<std::string>& values(uint32_t key) const { return values_[key]; }

 private:
  /// Checks everything about a point but its value.
  absl::Status Check(size_t metric, MetricKind kind, int64_t time_ms, Segments segments);
  absl::Status CheckTime(const Metric& metric, MetricKind kind, int64_t time_ms) const;
  static absl::Status CheckNumber(const Number& value);
  /// Finds the values of the segments in `found_`, and checks those that the batch does not have yet.
  absl::Status FindValues(Segments segments);
  /// Returns the number of the series whose values FindValues has found last. Adds the series and its values
  /// if the batch does not have them yet.
  uint32_t SeriesOf(size_t metric, Segments segments);

  ReportInfo info_;
  std::vector<std::vector<std::string>> values_;                           // for each key
  std::vector<absl::flat_hash_map<std::string, uint32_t>> value_indexes_;  // for each key
  absl::flat_hash_map<std::string, uint32_t> series_indexes_;              // by metric and values
  std::vector<Series> series_;
  uint32_t last_series_ = 0;     // which SeriesOf has returned last
  std::vector<uint32_t> found_;  // for each key an index of values_, or kNewValue
  std::string name_;             // of SeriesOf, kept for its memory
  std::vector<Point> points_;
  std::vector<std::string> sketches_;
};

}  // namespace kvstore::reports
