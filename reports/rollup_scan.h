#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/metadata.h"
#include "reports/rollup_plan.h"
#include "reports/rollup_reader.h"
#include "reports/row_key.h"

namespace kvstore::reports {

/// A row of points in whose place a roll-up of it can be read.
struct RolledRow {
  RowKey key;
  const Rollup* rollup = nullptr;
  RollupReader::Parts parts;  ///< Those that the plan asks for.
  /// Set if the row itself cannot be reached, so that nobody knows whether the roll-up is up to date.
  std::optional<absl::Status> unchecked;
};
using TakeRolledRow = std::function<absl::Status(const RolledRow&)>;

/// The result of reading the roll-ups of some rows.
struct RollupScanResult {
  std::vector<RowKey> left;  ///< Rows whose points must be read.
  uint64_t bytes = 0;        ///< All bytes that were read, including those that were of no use.
};

/// Reads the roll-ups of rows of a metric, and gives those that are up to date to `take`. Rows without points
/// are passed over.
///
/// rows     plan.For each of them is not null.
/// partial  Where a row cannot be reached, a roll-up of it that can be is given, too, as `unchecked`.
///
/// An error from `take` ends the walk with that error. Any other read that fails is left to the reader of the
/// points, which reports it the same way with and without roll-ups. DATA_LOSS names the row.
absl::StatusOr<RollupScanResult> ReadRollups(const Metadata& metadata, const RollupPlan& plan,
                                             std::span<const RowKey> rows, bool partial,
                                             const TakeRolledRow& take);

}  // namespace kvstore::reports
