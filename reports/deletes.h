#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "reports/chunk_types.h"
#include "reports/metadata.h"

namespace kvstore::reports {

/// Deletes the points of the metrics in info.metrics whose time is in [span.from, span.to), as they are at
/// this moment: what is written later stays. Returns how many rows were touched. If it fails in doubt
/// (IsInDoubt), some may have been: repeat it. NOT_FOUND, and no row is left, if the report is dropped
/// meanwhile.
absl::StatusOr<uint64_t> DeletePoints(const Metadata& metadata, const ReportInfo& info, TimeSpan span);

/// Removes all points of a report, and then the report. NOT_FOUND if there is none. If it fails, repeat it.
absl::Status DropReport(const Metadata& metadata, const std::string& report);

/// To be called by whoever has put rows of points, after the last put. A drop may have looked for rows before
/// they were there; nobody would find them again, because a dataset never gives the ID of a report twice. If
/// the report of this name and ID is gone, and no other one has the ID, its rows are removed, and this
/// returns NOT_FOUND. OK otherwise, and if the store does not say so within the time of the call: then rows
/// may stay.
absl::Status RemoveIfDropped(const Metadata& metadata, const ReportInfo& info);

}  // namespace kvstore::reports
