#include "reports/rollup_plan.h"

#include <algorithm>

namespace kvstore::reports {
namespace {

/// The parts that a function of plain values needs beside the counts; false if it needs the points.
bool AddParts(const Function& function, std::vector<RollupPart>& parts) {
  switch (function.kind) {
    case Function::Kind::kCount:
      return true;
    case Function::Kind::kSum:
    case Function::Kind::kAvg:
      parts.push_back(RollupPart::kSum);
      return true;
    case Function::Kind::kMin:
      parts.push_back(RollupPart::kMin);
      return true;
    case Function::Kind::kMax:
      parts.push_back(RollupPart::kMax);
      return true;
    case Function::Kind::kLast:
      parts.push_back(RollupPart::kLast);
      return true;
    case Function::Kind::kPercentile:
    case Function::Kind::kDistinct:
      break;
  }
  return false;
}

/// Whether a roll-up has all of these keys.
bool HasKeys(const ReportInfo& info, const Rollup& rollup, const std::vector<uint32_t>& keys) {
  return std::all_of(keys.begin(), keys.end(), [&](uint32_t key) {
    return std::find(rollup.keys.begin(), rollup.keys.end(), info.keys[key].name) != rollup.keys.end();
  });
}

}  // namespace

RollupPlan::RollupPlan(const ReportInfo& info, const Query& query, const FilterSet& filters,
                       const Metric& metric, const StepGrid& grid, TimeSpan span)
    : settings_(info.settings), grid_(grid), span_(span) {
  if (!query.use_rollups) return;
  if (metric.kind == MetricKind::kValue) {
    parts_ = {RollupPart::kCount};
    if (!AddParts(query.function, parts_)) return;
    if (query.top && !AddParts(query.top->by, parts_)) return;
    std::sort(parts_.begin(), parts_.end());
    parts_.erase(std::unique(parts_.begin(), parts_.end()), parts_.end());
  } else {
    parts_ = {RollupPart::kSketch};
  }
  const std::vector<uint32_t> keys = filters.KeysUsed();
  for (const Rollup& rollup : info.rollups) {
    if (HasKeys(info, rollup, keys)) rollups_.push_back(&rollup);
  }
  std::stable_sort(rollups_.begin(), rollups_.end(), [](const Rollup* a, const Rollup* b) {
    if (a->keys.size() != b->keys.size()) return a->keys.size() < b->keys.size();
    return a->step_ms > b->step_ms;
  });
}

const Rollup* RollupPlan::For(uint64_t period_s) const {
  const auto begin = static_cast<int64_t>(period_s * 1000);
  const auto end = static_cast<int64_t>((period_s + settings_.period_s) * 1000);
  const TimeSpan row{std::max(begin, span_.from), std::min(end, span_.to)};
  const auto found = std::find_if(rollups_.begin(), rollups_.end(),
                                  [&](const Rollup* rollup) { return Aligned(*rollup, row); });
  return found == rollups_.end() ? nullptr : *found;
}

bool RollupPlan::Aligned(const Rollup& rollup, TimeSpan row) const {
  const auto step = static_cast<int64_t>(rollup.step_ms);
  const auto resolution = static_cast<int64_t>(settings_.resolution_ms);
  // Steps are counted from 1970, as periods are, and points lie at multiples of the resolution: whether a
  // point of the step can lie on either side of `time`.
  const auto cuts = [&](int64_t time) {
    const int64_t start = time - time % step;
    return start < time && time <= start + step - resolution;
  };
  if (cuts(row.from) || cuts(row.to)) return false;
  for (size_t i = grid_.IndexOf(row.from, 0) + 1; i < grid_.size() && grid_.start(i) < row.to; ++i) {
    if (cuts(grid_.start(i))) return false;
  }
  return true;
}

}  // namespace kvstore::reports
