#include "reports/point_block.h"

#include <iterator>
#include <utility>

namespace kvstore::reports {

void PointBlock::Append(std::span<const uint32_t> segments, const SeriesPoints& points) {
  AppendAll(all_.sketches, points.sketches);
  AppendRest(segments, points);
}

void PointBlock::Append(std::span<const uint32_t> segments, SeriesPoints&& points) {
  all_.sketches.insert(all_.sketches.end(), std::move_iterator(points.sketches.begin()),
                       std::move_iterator(points.sketches.end()));
  AppendRest(segments, points);
  points.clear();
}

void PointBlock::AppendRest(std::span<const uint32_t> segments, const SeriesPoints& points) {
  segments_.insert(segments_.end(), segments.begin(), segments.end());
  AppendAll(all_.times, points.times);
  AppendAll(all_.numbers, points.numbers);
  AppendAll(all_.adds, points.adds);
  ends_.push_back(all_.times.size());
}

}  // namespace kvstore::reports
