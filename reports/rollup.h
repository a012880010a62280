#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "reports/metadata.h"
#include "reports/rollup_types.h"
#include "reports/row_list.h"

namespace kvstore::reports {

struct RollupOptions {
  /// Rows that were written to within so many ms are left for later, because what would be made of them is
  /// soon out of date.
  uint64_t quiet_ms = 0;
  /// Roll-ups are kept also where reading the points takes no more bytes.
  bool keep_all = false;
  /// Called between two rows; an error ends the work with it. May be null.
  std::function<absl::Status()> pause;
};

/// Makes the roll-ups that a report declares, for each row of points for which they are not up to date, and
/// removes what was made of roll-ups that are declared no more.
///
/// The roll-ups of a row have the version of the row that they were made of (rows.h). A query takes them only
/// while the row still has that version, and reads the points otherwise, so that its answer does not depend
/// on what was made when. The work can be killed at any point, and several processes may do it at once: each
/// row is written by one put, if nobody else has written it meanwhile.
absl::StatusOr<RollupResult> MakeRollups(const Metadata& metadata, const std::string& report,
                                         const RollupOptions& options = {});

}  // namespace kvstore::reports
