#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "registry/open.h"

namespace kvstore {

/// What of an embedded store's logs was left out, or would be.
struct LeftOutLogs {
  std::filesystem::path log;    ///< The first that is damaged.
  uint64_t kept_bytes = 0;      ///< Of it, from its beginning.
  uint64_t later_logs = 0;      ///< Logs behind it, of which nothing is kept.
  uint64_t left_out_bytes = 0;  ///< In all; also what is gone, where that is known.
  uint64_t changes = 0;         ///< Cells, objects and the like put or deleted, that can still be read there.
  std::filesystem::path folder;  ///< Where the logs are now that were left out; empty: nothing was done.
};

/// Makes a store whose log is damaged end where the damage begins. Nothing is thrown away: the damaged log
/// and those behind it go into a folder of the store. Every dataset then is as it was at that moment, or at a
/// later one if it was written to tables since. IDs of objects that may have been given since are not given
/// again.
///
/// apply  do it, and open the store once. Else nothing is changed.
///
/// Nullopt if the store opens as it is. If it does not, and no log is damaged, the reason that it does not.
absl::StatusOr<std::optional<LeftOutLogs>> RepairLogs(const OpenOptions& options, bool apply);

}  // namespace kvstore
