#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "operate/alarms.h"

/// When the datasets of a fleet were purged, so that a leader knows what the one before has done, and people
/// are told where expired cells pile up.
namespace kvstore::operate {

/// ROOT/operate/purge in ZooKeeper: {"begun_ms", "complete_ms"}. Times are since 1970, by the clocks of the
/// leaders.
struct PurgeRecord {
  uint64_t begun_ms = 0;  ///< When the last purge began.
  /// When the last one began that has purged all datasets; where there was none yet, when kv operate first
  /// looked.
  uint64_t complete_ms = 0;
};

/// Returns the record. Where there is none yet, makes one that has `now_ms` for both, so that the first purge
/// waits for its hour. DATA_LOSS, with what to do, if it cannot be read.
absl::StatusOr<PurgeRecord> LoadPurge(ZooKeeper& zookeeper, const std::string& root, uint64_t now_ms);
/// Replaces the record, which must be there.
absl::Status SavePurge(ZooKeeper& zookeeper, const std::string& root, const PurgeRecord& record);

/// Returns whether the day's purge has not begun yet, although its hour has: also later in the day, if the
/// leader of that hour died, or there was none.
///
/// hour  Of the day in UTC, from 0 to 23.
bool IsPurgeDue(const PurgeRecord& record, uint64_t hour, uint64_t now_ms);

/// Returns what to tell a person if the last purge of all datasets is more than two days ago, so that cells
/// that have expired take disks' space and readers' time.
std::optional<Finding> FindBacklog(const PurgeRecord& record, uint64_t now_ms);

}  // namespace kvstore::operate
