#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "reports/batch.h"
#include "reports/reports.h"

namespace kvstore::reports {

/// Reads the points of a write_points as a batch of a report:
///
///   {"metric", "time", "segments": {key: value}, "value": 3}, or "values": [...] for a metric of kind
///   distinct (strings) or distribution (numbers)
///
/// INVALID_ARGUMENT names the first point that is wrong, "points[3].time: ..."; NOT_FOUND the metric.
absl::StatusOr<Batch> ReadPoints(Reports& reports, const std::string& report,
                                 const std::vector<Json>& points);

}  // namespace kvstore::reports
