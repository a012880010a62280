#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/report_types.h"
#include "reports/rollup_cell.h"
#include "reports/rows.h"

namespace kvstore::reports {

/// The chunks of each part of a roll-up.
using RollupChunks = std::map<RollupPart, std::vector<std::string>>;

/// Makes the parts of a roll-up (RollupPart) from the points of a row, for each group of the roll-up's keys
/// and each of its steps.
///
/// live  the row's chunks, oldest first; at least one.
///
/// Returns nullopt where there cannot be such a roll-up, because a number passes what can be stored exactly,
/// or there are too many series and steps. DATA_LOSS as reading the points. Keeps to the caller's deadline.
absl::StatusOr<std::optional<RollupChunks>> RollUp(const ReportInfo& info, const RowKey& key,
                                                   const std::vector<LiveChunk>& live, const Rollup& rollup);

}  // namespace kvstore::reports
