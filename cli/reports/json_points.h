#pragma once

#include <cstdint>
#include <functional>

#include "cli/reports/load_target.h"
#include "reports/reports.h"

namespace kvstore::cli {

/// Reads the points of a file of JSON lines into a target. A line is one point, as in write_points of
/// docs/json-lines.md:
///
///   {"metric": "clicks", "time": "2013-01-01", "segments": {"country": "US"}, "value": 3}
///
/// or, for sets and distributions, with "values"; or it has a point of each metric that it names:
///
///   {"time": "2013-01-01", "country": "US", "clicks": 3, "delay": [4, -2, 11]}
///
/// where a metric that is null has no point.
///
/// file      a file descriptor.
/// progress  told from time to time how many bytes were read.
///
/// Throws Failure.
void LoadJsonLines(reports::Reports& reports, const LoadOptions& options, int file, LoadTarget& target,
                   const std::function<void(uint64_t bytes)>& progress);

}  // namespace kvstore::cli
