#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "reports/metadata.h"

namespace kvstore::reports {

/// Removes the rows of a report's roll-ups whose periods end no later than `ended_by_s`; UINT64_MAX: all.
/// Points are not touched.
absl::Status RemoveRollups(const Metadata& metadata, const ReportSettings& settings, uint64_t ended_by_s);

}  // namespace kvstore::reports
