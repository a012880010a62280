#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reports/number.h"
#include "reports/report_types.h"

namespace kvstore::reports {

template <typename T>
void AppendAll(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// The points of one series, columns side by side: time i belongs to value i.
struct SeriesPoints {
  std::vector<int64_t> times;         ///< ms, ascending strictly.
  std::vector<Number> numbers;        ///< The values of a metric of kind value; else empty.
  std::vector<std::string> sketches;  ///< Encoded, of the other kinds; else empty.
  /// 1: the value is added to what is older; 0: it replaces that.
  std::vector<uint8_t> adds;

  void clear() {
    times.clear();
    numbers.clear();
    sketches.clear();
    adds.clear();
  }
  size_t size() const { return times.size(); }
};

/// The points of many series of one metric, sorted by segments, then time.
class PointBlock {
 public:
  PointBlock(MetricKind kind, uint32_t keys) : kind_(kind), keys_(keys) {}

  /// Appends a series, whose segments must be greater than those of the one before.
  ///
  /// segments  one ID for each segment key.
  /// points    at least one.
  void Append(std::span<const uint32_t> segments, const SeriesPoints& points);
  /// The same, and leaves `points` empty: sketches are moved rather than copied.
  void Append(std::span<const uint32_t> segments, SeriesPoints&& points);

  MetricKind kind() const { return kind_; }
  uint32_t keys() const { return keys_; }
  size_t series() const { return ends_.size(); }
  size_t points() const { return all_.times.size(); }
  std::span<const uint32_t> segments(size_t series) const {
    return std::span(segments_).subspan(series * keys_, keys_);
  }
  /// The points of a series are those from begin to end, exclusive.
  size_t begin(size_t series) const { return series == 0 ? 0 : ends_[series - 1]; }
  size_t end(size_t series) const { return ends_[series]; }
  /// The times of a series, as in SeriesPoints.
  std::span<const int64_t> times(size_t series) const {
    return std::span(all_.times).subspan(begin(series), end(series) - begin(series));
  }
  const SeriesPoints& all() const { return all_; }

 private:
  /// Appends all but the sketches.
  void AppendRest(std::span<const uint32_t> segments, const SeriesPoints& points);

  MetricKind kind_;
  uint32_t keys_;
  std::vector<uint32_t> segments_;
  std::vector<size_t> ends_;
  SeriesPoints all_;
};

}  // namespace kvstore::reports
