#include "cli/reports/query_steps.h"

#include <algorithm>
#include <cstdlib>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "cli/command.h"

namespace kvstore::cli {
namespace {

using reports::Query;
using reports::Step;
using reports::StepGrid;

constexpr int64_t kDayMs = 86'400'000;

StepGrid GridOf(const Query& query, int64_t from, int64_t to) {
  if (!query.step) return StepGrid::Whole(from, to);
  return OrFail(StepGrid::Make(*query.step, query.zone, from, to, query.limits.max_steps));
}

int64_t Shifted(const Query& query, int64_t time) {
  return reports::Shift(time, *query.compare_step, query.compare_sign, query.zone);
}

/// Returns whether the calendar has the day and the time of day of `start` also at the other time: a month
/// may have fewer days, and clocks leave out an hour. Where it does not, Shift has gone on to another.
bool IsSamePlace(const Query& query, int64_t start, int64_t shifted) {
  const auto at = absl::ToCivilSecond(absl::FromUnixMillis(start), query.zone);
  const auto other = absl::ToCivilSecond(absl::FromUnixMillis(shifted), query.zone);
  const bool of_months = query.compare_step->unit == Step::Unit::kMonths;
  const bool of_calendar = query.compare_step->unit != Step::Unit::kMilliseconds;
  if (of_months && reports::FixedLength(*query.step).value_or(kDayMs + 1) <= kDayMs &&
      at.day() != other.day()) {
    return false;
  }
  return !of_calendar || query.step->unit != Step::Unit::kMilliseconds ||
         at - absl::CivilSecond(absl::CivilDay(at)) == other - absl::CivilSecond(absl::CivilDay(other));
}

/// Returns the step of `grid` that begins nearest to a time, if it is no more than half a step away.
std::optional<size_t> Nearest(const Step& step, const StepGrid& grid, int64_t time) {
  if (grid.size() == 0) return std::nullopt;
  size_t nearest = grid.IndexOf(time, 0);
  const auto distance = [&](size_t index) { return std::abs(grid.start(index) - time); };
  if (nearest + 1 < grid.size() && distance(nearest + 1) < distance(nearest)) ++nearest;
  const int64_t length = reports::FixedLength(step).value_or(28 * kDayMs * step.count);
  if (distance(nearest) > length / 2) return std::nullopt;
  return nearest;
}

StepValues PutIntoSteps(const std::vector<reports::TimeValue>& points, const StepGrid& grid) {
  StepValues values(grid.size());
  size_t step = 0;
  for (const auto& [time, value] : points) {
    if (grid.size() == 0) break;
    step = grid.IndexOf(time, step);
    values[step] = value;
  }
  return values;
}

}  // namespace

QuerySteps::QuerySteps(const Query& query)
    : steps_(GridOf(query, query.from, query.to)), partners_(steps_.size()) {
  if (!query.compare_step) return;
  const auto bounded = [&](int64_t time) {
    return std::clamp<int64_t>(Shifted(query, time), 0, reports::kMaxTimeMs + 1);
  };
  compared_ = GridOf(query, bounded(query.from), bounded(query.to));
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (!query.step) {
      if (step < compared_.size()) partners_[step] = step;
      continue;
    }
    const int64_t shifted = Shifted(query, steps_.start(step));
    if (IsSamePlace(query, steps_.start(step), shifted)) {
      partners_[step] = Nearest(*query.step, compared_, shifted);
    }
  }
}

std::optional<int64_t> QuerySteps::compared_start(size_t step) const {
  if (!partners_[step]) return std::nullopt;
  return compared_.start(*partners_[step]);
}

StepValues QuerySteps::Values(const reports::ResultSeries& series) const {
  return PutIntoSteps(series.points, steps_);
}

StepValues QuerySteps::Compared(const reports::ResultSeries& series) const {
  StepValues values(steps_.size());
  if (!series.compared) return values;
  const StepValues theirs = PutIntoSteps(*series.compared, compared_);
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (partners_[step]) values[step] = theirs[*partners_[step]];
  }
  return values;
}

}  // namespace kvstore::cli
