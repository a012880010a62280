#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/table_records.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/tables.h"
#include "kvstore_api/dataset.h"

/// Makes and removes the tables of datasets while others may work on them: a migration that has renamed them,
/// a move that has taken the shard away, a process that drops the dataset or creates the next one of its
/// name. Functions that take a Connection throw sql::SQLException.
namespace kvstore::mysql {

/// Returns the datasets that the catalog has on these servers now. It is called by many threads, one at a
/// time.
using ReadSpecs = std::function<absl::StatusOr<std::vector<DatasetSpec>>()>;
/// Counts the tables or shards that were left as they are, by reason.
using LeftAlone = std::map<std::string, uint64_t>;

/// Makes the dataset's table on a shard. Returns OK too if it is there already, be it under the name that a
/// migration gives it.
///
/// UNAVAILABLE          another process works on the tables, or the shard has moved to another host.
/// FAILED_PRECONDITION  the shard's database is missing; or a table of another dataset has the name
///                      (LeftoverError).
absl::Status CreateTables(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Checks that on shards first..last of a host no table has the name of the dataset's but the dataset's own.
///
/// FAILED_PRECONDITION  there is one (LeftoverError, if it is a dataset's).
absl::Status CheckNameIsFree(Connection& connection, const DatasetSpec& spec, uint32_t first, uint32_t last);

/// Returns the UNAVAILABLE error for tables of a shard on which another process is working.
absl::Status TablesBusyError(const std::string& database);

/// Says what became of a table that a call needs.
enum class FirstUse : uint8_t {
  kThere,   ///< It is there now.
  kBusy,    ///< Another process has been working on the shard's tables for a second: to be tried again.
  kNotHere  ///< It is not to be made here: it was made before; or the dataset, or the shard, is elsewhere.
};

/// Makes the dataset's table on a shard, if the dataset's tables are made on first use and this one was not
/// made yet. It is made under another name (TableName with "$new" after it), recorded, and renamed, so that a
/// table which is used is always recorded. Never makes a database. UNAVAILABLE if the records cannot be
/// reached.
absl::StatusOr<FirstUse> MakeOnFirstUse(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                                        TableRecords& records);

/// Does the same for work that needs the tables of all shards: waits for some seconds while another process
/// is working on the shard's tables, and is OK too if the dataset or the shard is elsewhere. UNAVAILABLE if
/// the other process does not end, or if the table is missing and the records cannot be reached.
absl::Status MakeUnlessMade(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                            TableRecords& records);

/// Whether the dataset has its table on a shard, or those of a migration.
bool HasTables(Connection& connection, const DatasetSpec& spec, uint32_t shard);

enum class Removed : uint8_t { kInAnyCase, kIfEmpty };

/// Removes all tables of this incarnation of the dataset on a shard, and nothing else.
///
/// UNAVAILABLE          another process works on the tables, or the shard has moved to another host.
/// FAILED_PRECONDITION  kIfEmpty: a table has rows, and nothing was removed.
absl::Status DropTables(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                        Removed removed = Removed::kInAnyCase);

/// Checks that the tables of this incarnation on a shard, which the catalog does not name, have no rows.
///
/// UNAVAILABLE          the shard has moved to another host.
/// FAILED_PRECONDITION  a table has rows.
absl::Status CheckEmpty(Connection& connection, const DatasetSpec& spec, uint32_t shard);

/// Makes what a shard lacks: its database, and the tables of those of `specs` in this space that `read`
/// returns too. Tables that have moved to another host, or whose dataset migrates, are left alone.
///
/// specs       the catalog's datasets as of a moment ago, so that `read` is called only if a table is
///             missing.
/// mod_shards  how many mod shards there are.
/// records     what is made of datasets whose tables are made on first use is noted there. Null: `specs` has
///             none of these.
/// left_alone  what was left alone is added to it.
///
/// UNAVAILABLE          another process works on the tables, or moves the shard.
/// FAILED_PRECONDITION  a table has the name that is no dataset's, or that has rows of an unknown dataset.
absl::Status MakeShard(Connection& connection, ShardSpace space, uint32_t shard, uint32_t mod_shards,
                       const std::vector<DatasetSpec>& specs, const ReadSpecs& read, TableRecords* records,
                       LeftAlone& left_alone);

}  // namespace kvstore::mysql
