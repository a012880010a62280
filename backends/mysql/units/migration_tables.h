#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "backend_api/migration_control.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/server_lock.h"
#include "backends/mysql/driver/tables.h"
#include "kvstore_api/dataset.h"

/// A migration makes the following on a shard, in the same database as the dataset's table NAME:
///
///   NAME$away           the table itself while it is importing or moved, so that clients do not find it
///   NAME$state          the dataset's state on this shard, and the worker's epoch
///   NAME$dirty          the dirty log: keys of the units that were written
///   NAME$ai, $au, $ad   the triggers after insert, update and delete, which fill the log and refuse writes
///                       while the dataset is frozen
///
/// On MyRocks the names are NAME$r$away and so on (TableFamily::Beside). The other side of the migration may
/// be InnoDB on the same servers; then the table NAME is either side's.
///
/// Functions that take a Connection throw sql::SQLException.
namespace kvstore::mysql {

/// Returns the spec with the table name that the dataset has while it is importing or moved.
DatasetSpec AwaySpec(DatasetSpec spec);

/// The state of a dataset and its migration on a shard.
struct ShardMigration {
  bool base = false;                          ///< The table NAME is there, of this incarnation and engine.
  bool leftover = false;                      ///< A table NAME is there, of another incarnation.
  bool away = false;                          ///< The table NAME$away is there, of this incarnation.
  bool dirty = false;                         ///< A table NAME$dirty is there.
  bool state = false;                         ///< NAME$state is there, of this incarnation. It has the rest:
  uint64_t epoch = 0;                         ///< The worker's epoch; 0 without `state`.
  EndpointState at = EndpointState::kAbsent;  ///< Without `state`: kServing if `base`, else kAbsent.
  bool capture = false;                       ///< Whether the writes of clients are captured.
};
/// Reads what there is on a shard, without locks.
ShardMigration ReadShardMigration(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Makes `epoch` the shard's epoch, and begins the migration there if it has not begun. The caller has a
/// MigrationLock. ABORTED if the shard's epoch is not lower.
absl::Status RaiseEpoch(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch);
/// Brings a shard to a state, as MigrationControl does with all. The caller has a MigrationLock.
///
/// ABORTED              the shard's epoch is another one.
/// FAILED_PRECONDITION  there is no way from the shard's state to this one.
/// UNAVAILABLE          a client's transaction holds locks for longer than a second; to be retried.
absl::Status TransitionShard(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                             EndpointState state, bool capture);

/// Brings a shard to a state from wherever it stands: see MigrationControl::Reassert. The caller has a
/// MigrationLock. Errors are those of TransitionShard.
absl::Status ReassertShard(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                           EndpointState state, bool capture);

/// Returns the UNAVAILABLE error for a MigrationLock that was not acquired.
absl::Status MigrationLockedError(const DatasetSpec& spec);

}  // namespace kvstore::mysql
