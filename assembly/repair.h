#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "kvstore_api/open.h"

namespace kvstore {

/// The part of an embedded store's write-ahead logs that a repair leaves out, or would leave out.
struct LeftOutLogs {
  std::filesystem::path log;  ///< The first damaged log.
  bool log_missing = false;   ///< There is no such file, although there was one at the last close.
  uint64_t kept_bytes = 0;    ///< How much is kept of that log, from its beginning.
  uint64_t later_logs = 0;    ///< The number of logs after it, of which nothing is kept.
  /// The size of all that is left out, including data that is gone already, where its size is known.
  uint64_t left_out_bytes = 0;
  /// How much of that is gone: bytes that logs had at the last close and have no more. How many changes they
  /// held is not known.
  uint64_t gone_bytes = 0;
  /// The number of puts and deletes (of cells, objects and the like) that can still be read in what is left
  /// out.
  uint64_t changes = 0;
  /// When the last of the logs was written to (ms since 1970), by its file's time; 0 if that is not known. A
  /// backup that is later may lose less.
  uint64_t written_until_ms = 0;
  /// Where the left out logs have been moved to; empty: nothing was done, or nothing of them was there.
  std::filesystem::path folder;
};

/// Makes a store with a damaged log end where the damage begins. Nothing is thrown away: the damaged log and
/// the logs after it are moved into a folder of the store. Every dataset is then as it was when the damage
/// begins, or later if it has been flushed to tables since. IDs of objects that may have been assigned after
/// that point are not assigned again. The store must not be open in another process: that is UNAVAILABLE.
///
/// apply  true: repair the store, then open it once as a check; false: change nothing.
///
/// Returns nullopt if the store opens as it is; its tables are not read for that. If it does not open for a
/// reason other than a damaged log, returns that error. INVALID_ARGUMENT if the store has no embedded engine.
absl::StatusOr<std::optional<LeftOutLogs>> RepairLogs(const OpenOptions& options, bool apply);

}  // namespace kvstore
