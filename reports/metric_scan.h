#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/filter_set.h"
#include "reports/group_table.h"
#include "reports/metadata.h"
#include "reports/query.h"

namespace kvstore::reports {

/// What all scans of a query share.
struct ScanContext {
  const Metadata& metadata;
  const ReportInfo& info;
  const Query& query;
  const FilterSet& filters;
  QueryUse& use;
};

/// Reads the rows of a metric in a span of time, or their roll-ups, once for all filters, salts in parallel,
/// and gives the groups. Adds to `costs`, which has one of each salt, and to `missing` what could not be
/// reached where the query allows that.
absl::StatusOr<GroupTable> ScanMetric(const ScanContext& context, const Metric& metric, const StepGrid& grid,
                                      TimeSpan span, std::vector<QueryCost>& costs,
                                      std::vector<std::string>& missing);

}  // namespace kvstore::reports
