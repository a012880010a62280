#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvstore {

/// An entry of a dirty log, which records that a write touched a unit.
struct DirtyEntry {
  uint32_t log = 0;  ///< The number of one of the backend's logs, for example of a shard's.
  uint64_t id = 0;   ///< Never used twice in a log.
  /// The unit's key. For rows also enc(row) alone, if the whole row was touched.
  std::string key;
};

/// How much of a dirty log is still to be copied.
struct DirtyLag {
  uint64_t entries = 0;
  uint64_t oldest_ms = 0;  ///< Age of the oldest entry; 0 if there is none or the log does not know.
};

/// Tells which units of a dataset clients have written to. Thread-safe.
///
/// While capture is on (MigrationControl::TransitionTo), each write of a client adds entries to a dirty log,
/// atomically with the write. They name the units that it touched, not their values. So the worker
/// of a migration
///
/// 1. lists entries,
/// 2. reads the units that they name (UnitReader::Read) and deals with what it has read, and
/// 3. removes exactly the entries that it listed. A write since then has added entries of its own.
///
/// The dirty logs of a dataset have one consumer, its migration: an entry is gone once it was removed.
class ChangeCapture {
 public:
  virtual ~ChangeCapture() = default;

  /// Returns the first `limit` entries of each dirty log, in order of their IDs. That need not be the order
  /// of commits, so always read from the head again.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) = 0;
  /// Removes exactly these entries. ABORTED if a later worker has raised the epoch (migration_control.h).
  [[nodiscard]] virtual absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) = 0;
  [[nodiscard]] virtual absl::StatusOr<DirtyLag> Lag() = 0;
};

}  // namespace kvstore
