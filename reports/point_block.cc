#include "reports/point_block.h"

namespace kvstore::reports {
namespace {

template <typename T>
void AppendAll(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void PointBlock::Append(std::span<const uint32_t> segments, const SeriesPoints& points) {
  segments_.insert(segments_.end(), segments.begin(), segments.end());
  AppendAll(all_.times, points.times);
  AppendAll(all_.numbers, points.numbers);
  AppendAll(all_.sketches, points.sketches);
  AppendAll(all_.adds, points.adds);
  ends_.push_back(all_.times.size());
}

}  // namespace kvstore::reports
