#include "bench/reports/point_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/time/civil_time.h"

namespace kvstore::bench {
namespace {

/// Makes a number look random: the finaliser of SplitMix64.
uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

std::vector<std::string> Names(char prefix, int digits, uint32_t count) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("{}{:0{}}", prefix, i, digits));
  return names;
}

}  // namespace

reports::ReportInfo PointSet::info() const {
  reports::ReportInfo info{.name = report,
                           .settings = {.resolution_ms = kDayMs, .period_s = 30 * 86'400, .salts = 4},
                           .keys = {{.name = "country"}, {.name = "app"}, {.name = "gender"}}};
  for (const std::string& metric : Names('m', 4, metrics)) info.metrics.push_back({.name = metric});
  return info;
}

int64_t ValueOf(const PointSet& set, uint32_t metric, uint32_t series, uint32_t day) {
  const uint64_t hash = Mix(uint64_t{metric} * set.series() + series);
  // Levels from 8 to 65,536, as many small series as large ones.
  const uint64_t level = uint64_t{8} << (hash % 14);
  // The first day is a Tuesday.
  const bool weekend = (day + 1) % 7 >= 5;
  return static_cast<int64_t>(level * (weekend ? 7 : 10) / 10 + Mix(hash ^ day) % (level / 5 + 1));
}

PointNames::PointNames(const PointSet& set)
    : metrics(Names('m', 4, set.metrics)),
      countries(Names('c', 2, set.countries)),
      apps(Names('a', 3, set.apps)),
      genders(Names('g', 1, set.genders)) {
  for (uint32_t day = 0; day < set.days; ++day) {
    days.push_back(absl::FormatCivilTime(absl::CivilDay(2013, 1, 1) + day));
  }
}

const std::vector<MadePoint>& PointMaker::Next(size_t most) {
  made_.clear();
  const uint64_t end = std::min(set_.points(), next_ + most);
  for (; next_ < end; ++next_) {
    MadePoint& point = made_.emplace_back();
    uint64_t series = 0;  // among those of all metrics
    if (order_ == PointOrder::kBySeries) {
      series = next_ / set_.days;
      point.day = static_cast<uint32_t>(next_ % set_.days);
    } else {
      const uint64_t all = uint64_t{set_.metrics} * set_.series();
      series = next_ % all;
      point.day = static_cast<uint32_t>(next_ / all);
    }
    point.metric = static_cast<uint32_t>(series / set_.series());
    point.series = static_cast<uint32_t>(series % set_.series());
    point.value = ValueOf(set_, point.metric, point.series, point.day);
  }
  return made_;
}

}  // namespace kvstore::bench
