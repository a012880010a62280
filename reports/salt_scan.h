#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "reports/filter_set.h"
#include "reports/group_table.h"
#include "reports/metadata.h"
#include "reports/query.h"
#include "reports/rollup_plan.h"
#include "reports/rollup_reader.h"
#include "reports/rollup_scan.h"
#include "reports/row_merge.h"
#include "reports/rows.h"

namespace kvstore::reports {

/// The objects that all scans of a query share.
struct ScanContext {
  const Metadata& metadata;
  const ReportInfo& info;
  const Query& query;
  const FilterSet& filters;
  QueryUse& use;
};

/// Returns what the aggregates of a query need to keep.
GroupTable::Keep KeepsOf(const Query& query);

/// Reads one salt of a metric in a span of time, or its roll-ups, once for all filters. Externally
/// synchronised; what it is made with must outlive it.
///
/// The scans of several threads lie side by side in memory. The members that a scan writes for each series
/// are in cache lines of their own: else the threads would take these from each other, and those beside them
/// that all read.
class alignas(64) SaltScan {
 public:
  SaltScan(const ScanContext& context, const Metric& metric, const RollupPlan& plan, const StepGrid& grid,
           TimeSpan span);

  /// Reads everything, once.
  absl::Status Run(uint8_t salt);

  /// The groups of this salt.
  GroupTable& table() { return table_; }
  const QueryCost& cost() const { return cost_; }
  /// Returns what could not be reached, where the query allows that.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  absl::Status Scan(uint8_t salt);
  void AddMissing(const RowKey& row, const std::string& text);
  /// Counts bytes of a row that were read, and stay in memory until the row was taken.
  absl::Status TakeRead(uint64_t bytes);
  absl::Status TakeRowMemory(uint64_t bytes);
  /// Called when nothing of a row is in memory any more.
  void FreeRow();
  absl::Status TakeRow(const StoredRow& row);
  /// Adds the series that `merge` has found.
  absl::Status TakeSeries(RowMerge& merge);
  /// Adds a series of integers that lies in one chunk; false, and nothing was read, if it has others.
  absl::StatusOr<bool> TakeIntegers(SeriesReader& reader);
  absl::Status TakeRolledRow(const RolledRow& row);
  /// Finds the filters that a series matches, and its group; false if it matches none.
  bool Matches(std::span<const uint32_t> segments);

  const ScanContext& context_;
  const Metric& metric_;
  const RollupPlan& plan_;
  const TimeSpan span_;
  GroupTable table_;
  QueryCost cost_;
  std::vector<std::string> missing_;
  NumberList matched_;
  NumberList group_;
  uint64_t row_memory_ = 0;  // that the row in work takes
  SeriesPoints points_;
  SeriesSummary summary_;
  std::vector<int64_t> integers_;
  std::vector<Int128> sums_;
  std::vector<StepRun> runs_;  // of the times that runs_of_ had
  const SeriesReader* runs_of_ = nullptr;
  uint64_t runs_number_ = 0;  // its times_number then
};

}  // namespace kvstore::reports
