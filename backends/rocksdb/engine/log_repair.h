#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/data_dir.h"

/// Repair of a store whose logs are damaged. If a log has a hole, or lacks an end that it had at the last
/// close, the store refuses to open: writes after the hole would be visible, and earlier ones lost. A repair
/// makes the logs end at the hole. Everything after it is moved into a folder, and the store never reads it
/// again.
namespace kvstore::rocks {

/// The first damaged log, and what a repair would leave out.
struct LogDamage {
  std::filesystem::path log;  ///< The damaged log.
  bool missing = false;       ///< There is no such file, although there was one at the last close.
  uint64_t kept = 0;          ///< Bytes at the beginning of the log that can be read and are kept.
  std::vector<std::filesystem::path> later;  ///< The logs that follow it and are not empty, in order.
  uint64_t left_out = 0;                     ///< Bytes left out in all, with those that are gone.
  /// Bytes that logs had at the last close and have no more, in missing files or after the end of others.
  /// How many changes they held is not known.
  uint64_t gone = 0;
  uint64_t changes = 0;  ///< Puts and deletes that are left out, as far as they can still be read.
  /// When the last of these files was written to (ms since 1970), as the file system says; 0: not known.
  uint64_t written_until_ms = 0;
};

/// Checks the logs of a store that is not open. Nullopt if none is damaged.
absl::StatusOr<std::optional<LogDamage>> FindLogDamage(const DataDir& dir);

/// Cuts the logs at the damage, and returns the folder that the rest was moved to, "left-out/..." in the
/// store's folder; empty if there is no rest. A repair that is interrupted leaves the store damaged as
/// before, and can be repeated. The next open raises the counters of IDs above all that may have been
/// assigned in the part left out (see Engine::RaiseIdsAboveLeftOut).
absl::StatusOr<std::filesystem::path> EndLogsAtDamage(const DataDir& dir, const LogDamage& damage);

/// Bytes of logs that repairs have left out, and that no open has accounted for yet; 0 if there are none.
uint64_t LeftOut(const DataDir& dir);
/// Records that an open has accounted for them.
absl::Status ClearLeftOut(const DataDir& dir);

}  // namespace kvstore::rocks
