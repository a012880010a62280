#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "reports/chunk_types.h"
#include "reports/metadata.h"

namespace kvstore::reports {

/// Deletes the points of the metrics in info.metrics whose time is in [span.from, span.to), as they are at
/// this moment: what is written later stays. Returns how many rows were touched. If it fails, some may have
/// been: repeat it.
absl::StatusOr<uint64_t> DeletePoints(const Metadata& metadata, const ReportInfo& info, TimeSpan span);

/// Removes all points of a report, and then the report. NOT_FOUND if there is none. If it fails, repeat it.
absl::Status DropReport(const Metadata& metadata, const std::string& report);

}  // namespace kvstore::reports
