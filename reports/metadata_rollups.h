#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/report_types.h"

/// The roll-ups of a report in its row of metadata: one column, so that a change of all of them is one write.
namespace kvstore::reports {

inline constexpr char kRollupsColumn[] = "rollups";

/// A roll-up as it is stored, with its segment keys by number.
struct StoredRollup {
  uint32_t id = 0;
  std::vector<uint32_t> keys;  ///< Ascending.
  uint64_t step_ms = 0;
};

struct StoredRollups {
  uint32_t next = 1;  ///< The next ID to give.
  std::vector<StoredRollup> rollups;
};

std::string RollupsToText(const StoredRollups& stored);
/// DATA_LOSS unless RollupsToText gave this text.
absl::StatusOr<StoredRollups> RollupsFromText(std::string_view text);

/// The wanted roll-ups in the form that is stored. One that is in `known` keeps its ID, another one gets the
/// next.
///
/// INVALID_ARGUMENT names the field and the limit.
absl::StatusOr<StoredRollups> ChooseRollups(const ReportInfo& info, const StoredRollups& known,
                                            const std::vector<Rollup>& wanted);
/// The roll-ups with the names of their keys. One with a key that `info` lacks is left out: the key was added
/// after `info` was read.
std::vector<Rollup> NamedRollups(const ReportInfo& info, const StoredRollups& stored);

}  // namespace kvstore::reports
