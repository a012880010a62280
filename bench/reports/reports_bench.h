#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/reports/figures.h"

/// Measures what reports cost: loading, bytes on disk, the questions of dashboards, growth, roll-ups.
namespace kvstore::bench {

/// Runs the parts that are wanted on an embedded store of its own, which is removed at the end. A full run
/// makes 80 million points and takes some 4 GB of disk, with DuckDB 10 GB.
///
/// tell  called with a description of what comes next, for people who wait.
///
/// INVALID_ARGUMENT if there is no such part; UNAVAILABLE if DuckDB cannot be started; DATA_LOSS if an
/// answer, ours or DuckDB's, differs from the sums of the points.
absl::StatusOr<ReportsReport> BenchReports(const ReportsOptions& options,
                                           const std::function<void(const std::string& what)>& tell);

}  // namespace kvstore::bench
