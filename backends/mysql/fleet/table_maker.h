#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "backend_api/table_records.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/tables.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// Makes tables of datasets on the shards where a call needs them first, in place of all when the dataset is
/// created (MySqlOptions::tables_on_first_use). Which datasets these are, the records say (TableRecords), so
/// that all processes agree. Thread-safe. Functions that take a Connection throw sql::SQLException.
class TableMaker {
 public:
  explicit TableMaker(std::unique_ptr<TableRecords> records) : records_(std::move(records)) {}

  TableRecords& records() { return *records_; }

  /// Notes of which dataset the tables of a family are, for MakeMissing.
  ///
  /// family  TableFamily::number.
  void Add(uint32_t family, const DatasetSpec& spec);
  /// Forgets all families of an incarnation.
  void Forget(uint64_t incarnation);

  /// Makes the tables of a family that a statement has found missing, on a shard and the next ones, `shards`
  /// in all. Those of a family that was not added are not to be made here. UNAVAILABLE, as a GoneError
  /// (backend_api/outcome.h), if the records cannot be reached.
  absl::StatusOr<FirstUse> MakeMissing(Connection& connection, const Table& table, uint32_t shards);
  /// Whether the dataset may lack tables that no call has needed yet. True too if the records cannot be
  /// reached.
  bool MayLackTables(const DatasetSpec& spec);
  /// Makes the dataset's table on a shard if no call has needed it yet: see mysql::MakeUnlessMade.
  absl::Status MakeUnlessMade(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
    return mysql::MakeUnlessMade(connection, spec, shard, *records_);
  }
  /// Whether the dataset has no table on a shard, and is right to have none.
  absl::StatusOr<bool> WasNeverMade(Connection& connection, const DatasetSpec& spec, uint32_t shard);

 private:
  const std::unique_ptr<TableRecords> records_;
  Mutex mutex_;
  std::map<uint32_t, DatasetSpec> families_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::mysql
