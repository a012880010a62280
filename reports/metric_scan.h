#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/group_table.h"
#include "reports/query.h"
#include "reports/salt_scan.h"

namespace kvstore::reports {

/// The costs of the salts of each metric.
using MetricCosts = std::vector<std::vector<QueryCost>>;

/// Reads the rows of all metrics of `context.info` in a span of time, or their roll-ups, once for all
/// filters, and returns the groups of each metric. Salts of all metrics are read in parallel. Adds to
/// `costs`, and to `missing` what could not be reached where the query allows that.
absl::StatusOr<std::vector<GroupTable>> ScanMetrics(const ScanContext& context, const StepGrid& grid,
                                                    TimeSpan span, MetricCosts& costs,
                                                    std::vector<std::string>& missing);

}  // namespace kvstore::reports
