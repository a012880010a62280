#pragma once

#include <cstdint>
#include <vector>

#include "reports/filter_set.h"
#include "reports/query.h"
#include "reports/rollup_cell.h"
#include "reports/steps.h"

namespace kvstore::reports {

/// Which roll-ups can answer a query of a metric exactly, by what the query and the report say; whether one
/// is up to date is another question. Thread-safe; what it is made with must outlive it.
///
/// A roll-up answers if it has all keys that filters and groups look at, and the function can be made of
/// sums: percentiles of plain values cannot. It answers for a row if each of its steps lies wholly in or
/// outside of the span, and wholly in one step of the query, whatever the time zone makes of that one.
/// Otherwise the row's points are read: a part of a row costs as much as all of it.
class RollupPlan {
 public:
  /// span  what the query asks for of what is retained.
  RollupPlan(const ReportInfo& info, const Query& query, const FilterSet& filters, const Metric& metric,
             const StepGrid& grid, TimeSpan span);

  /// Whether no roll-up can answer.
  bool empty() const { return rollups_.empty(); }
  /// The roll-up for the row of a period that begins at `period_s` and has a part of the span; null if its
  /// points must be read. If there are several, the one with the fewest keys, and among those the one with
  /// the longest steps: as a rule, the smallest.
  const Rollup* For(uint64_t period_s) const;
  /// The parts of a roll-up that the query needs.
  const std::vector<RollupPart>& parts() const { return parts_; }

 private:
  bool Aligned(const Rollup& rollup, TimeSpan row) const;

  const ReportSettings& settings_;
  const StepGrid& grid_;
  const TimeSpan span_;
  std::vector<const Rollup*> rollups_;  // the best first
  std::vector<RollupPart> parts_;
};

}  // namespace kvstore::reports
