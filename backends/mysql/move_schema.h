#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/server_lock.h"
#include "backends/mysql/tables.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/migration_endpoint.h"

/// What a migration makes of a dataset's table on a shard, beside it in the same database:
///
///   NAME$away    the table itself while it is importing or moved: whoever writes to NAME finds nothing
///   NAME$state   its state there, and the worker's epoch
///   NAME$dirty   what was touched
///   NAME$ai, $au, $ad   the triggers, after insert, update and delete
///
/// On MyRocks they are NAME$r$away and so on (TableFamily::Beside): the other side may be InnoDB on the same
/// servers, and then the table NAME is that side's or this one's.
///
/// What takes a Connection throws sql::SQLException.
namespace kvstore::mysql {

/// The dataset as its table is named while it is importing or moved.
DatasetSpec Away(DatasetSpec spec);
/// What a write is told by the triggers of a frozen table.
inline constexpr char kFrozenMessage[] = "kvstore: the dataset is about to move, writes are held";
inline constexpr int kSignalled = 1644;

/// What there is of a dataset on a shard.
struct Moving {
  bool base = false;      ///< The table under its name, of this incarnation and engine.
  bool leftover = false;  ///< That name is taken by what a dropped dataset left.
  bool away = false;      ///< The dataset's table under its other name.
  bool dirty = false;
  bool state = false;  ///< And this incarnation's:
  uint64_t epoch = 0;
  EndpointState at = EndpointState::kAbsent;
  bool capture = false;
};
Moving ReadMoving(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Under a MoveLock. ABORTED if the epoch is not above that which is there.
absl::Status RaiseEpoch(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch);
/// Under a MoveLock. See MigrationEndpoint::Enter.
absl::Status EnterState(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                        EndpointState state, bool capture);

/// Under a MoveLock. See MigrationEndpoint::Reassert.
absl::Status ReassertState(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                           EndpointState state, bool capture);

/// Whether a migration is at the dataset of this table there.
bool HasMigration(Connection& connection, const Table& table);

/// "`mod00001`.`events$state`"; table may be either of the dataset's two names.
std::string StateTable(const Table& table);
std::string DirtyTable(const Table& table);

}  // namespace kvstore::mysql
