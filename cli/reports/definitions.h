#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "reports/report_types.h"
#include "reports/rollup_types.h"

/// The parts of a report as they are written on the command line. All return INVALID_ARGUMENT for anything
/// else than they describe; the store checks lengths and limits.
namespace kvstore::cli {

/// "country", or "gender=unknown" with its default; divided at the first '='.
absl::StatusOr<reports::SegmentKey> ParseSegmentKey(std::string_view text);
/// "clicks", or with its kind: "delay:distribution". A name that has a ':' must have its kind after it.
absl::StatusOr<reports::Metric> ParseMetric(std::string_view text);
/// "country,gender@1d": the keys that are kept, and the step; "@1d" keeps none.
absl::StatusOr<reports::Rollup> ParseRollup(std::string_view text);

}  // namespace kvstore::cli
