#include "backends/mysql/fleet/shard_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "backend_api/leftover.h"
#include "backend_api/outcome.h"
#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/server_lock.h"
#include "base/fail_point.h"

namespace kvstore::mysql {
namespace {

/// The text after the dataset's name in the names of a migration's tables, on either engine
/// (TableFamily::Beside).
constexpr std::array<std::string_view, 2> kSides = {"$", "$r$"};

absl::Status BusyError(const DatasetSpec& spec, const std::string& database) {
  return absl::UnavailableError(
      fmt::format("dataset: another process is creating or changing the tables of '{}' on shard {}, or is "
                  "moving the shard; try again",
                  spec.name, database));
}

// ---- what is there ----

/// Names and comments of tables of a database.
using Found = std::map<std::string, std::string>;

/// Finds the dataset's table, the one that is to become it, and those that a migration makes of it, whichever
/// incarnation they are of.
Found FindTables(Connection& connection, const std::string& database, const DatasetSpec& spec) {
  const std::string& base = TableName(spec);
  Found found;
  Rows rows = connection.Ask(fmt::format(
      "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = '{0}' AND "
      "table_name IN ('{1}', '{1}$new', '{1}$away', '{1}$state', '{1}$dirty', '{1}$r$away', '{1}$r$state', "
      "'{1}$r$dirty')",
      database, base));
  while (rows.Next()) found.emplace(rows.Bytes(1), rows.Bytes(2));
  return found;
}

/// Whether the table is there and of this incarnation of the dataset.
bool Has(const Found& found, const std::string& table, const DatasetSpec& spec) {
  const auto at = found.find(table);
  return at != found.end() && at->second == TableComment(spec);
}

/// Whether a migration of this incarnation is at work in the database.
bool Migrates(const Found& found, const DatasetSpec& spec) {
  return std::any_of(kSides.begin(), kSides.end(), [&](std::string_view side) {
    const std::string prefix = TableName(spec) + std::string(side);
    return Has(found, prefix + "state", spec) || Has(found, prefix + "away", spec);
  });
}

/// Checks that a table of an incarnation that the catalog does not name is empty. If it is not, it may be a
/// dataset's of another catalog.
absl::Status CheckNoRows(Connection& connection, const std::string& database, const std::string& table,
                         uint64_t incarnation) {
  if (!connection.Ask(fmt::format("SELECT 1 FROM {}.{} LIMIT 1", Quote(database), Quote(table))).Next()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(fmt::format(
      "the table {0}.{1} of incarnation {2} has rows and is of no dataset of this catalog: choose another "
      "name, or, if nobody uses the table, put it aside, which keeps its rows: RENAME TABLE {3}.{4} TO "
      "{3}.{5}",
      database, table, incarnation, Quote(database), Quote(table), Quote(table + "_aside")));
}

/// Checks the same of all tables of this incarnation.
absl::Status CheckNoRows(Connection& connection, const std::string& database, const DatasetSpec& spec,
                         const Found& found) {
  for (const std::string_view end : {"", "$away", "$r$away"}) {
    const std::string table = TableName(spec) + std::string(end);
    if (!Has(found, table, spec)) continue;
    if (auto status = CheckNoRows(connection, database, table, spec.incarnation); !status.ok()) return status;
  }
  return absl::OkStatus();
}

enum class DatabaseState : uint8_t {
  kMissing,  ///< There is no database.
  kHere,     ///< The database is here.
  kMoved,    ///< The tables are put away: the shard is moving to another host, or has moved there.
  kBack      ///< Tables of an earlier move are put away, and the shard has come back.
};

DatabaseState StateOf(Connection& connection, const std::string& database) {
  bool here = false;
  bool moved = false;
  {
    Rows rows = connection.Ask(
        // The server looks up a single name directly; for IN it reads the whole list of databases.
        fmt::format("SELECT schema_name FROM information_schema.schemata WHERE schema_name = '{}' UNION ALL "
                    "SELECT schema_name FROM information_schema.schemata WHERE schema_name = '{}'",
                    database, MovedName(database)));
    while (rows.Next()) (rows.Bytes(1) == database ? here : moved) = true;
  }
  if (!moved) return here ? DatabaseState::kHere : DatabaseState::kMissing;
  const bool empty =
      !connection
           .Ask(fmt::format("SELECT 1 FROM information_schema.tables WHERE table_schema = '{}' LIMIT 1",
                            database))
           .Next();
  return empty ? DatabaseState::kMoved : DatabaseState::kBack;
}

std::string MovedText(const std::string& database) {
  return fmt::format(
      "its tables are put away in {}: the shard is moving to another host, or was moved there (kv shards "
      "move status; kv shards move finish removes them)",
      MovedName(database));
}

// ---- making ----

/// Returns the spec with the name that a table has while it is made on first use.
DatasetSpec NextSpec(DatasetSpec spec) {
  spec.table = TableName(spec) + std::string(kNewSuffix);
  return spec;
}

/// Gives a table that was made on first use its name.
void RenameNext(Connection& connection, const std::string& database, const DatasetSpec& spec) {
  connection.Run(fmt::format("RENAME TABLE {0}.{1} TO {0}.{2}", Quote(database),
                             Quote(TableName(NextSpec(spec))), Quote(TableName(spec))));
}

/// Whether the dataset's table is among those that were put away when the shard moved to another host, from
/// which it has come back.
bool WasMoved(Connection& connection, const std::string& database, const DatasetSpec& spec,
              DatabaseState state) {
  return state == DatabaseState::kBack &&
         Has(FindTables(connection, MovedName(database), spec), TableName(spec), spec);
}

/// Returns the error for a table that is in the way of a dataset's.
///
/// incarnation  of the dataset whose table it is; nullopt: of none.
absl::Status OtherTableError(const std::string& table, std::optional<uint64_t> incarnation) {
  if (!incarnation) {
    return absl::FailedPreconditionError(fmt::format(
        "dataset: the table {} is in the way, and belongs to no dataset: rename it, or choose another name "
        "for the dataset",
        table));
  }
  return LeftoverError(
      fmt::format("dataset: the table {} belongs to another dataset of the same name (incarnation {})", table,
                  *incarnation),
      *incarnation);
}

enum class Made : uint8_t { kThere, kMigrates, kMoved };

/// Makes the dataset's table unless it is there, migrates, or has moved. The caller holds the locks of the
/// dataset's tables and of the shard.
///
/// in_force  whether the catalog was seen under the locks to have this dataset. If so, a table of another
///           dataset of that name is left from a dropped one or of another catalog: it is replaced if it is
///           empty.
absl::StatusOr<Made> MakeTable(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                               DatabaseState state, bool in_force) {
  const std::string database = DatabaseName(SpaceOf(spec.shape), shard);
  const Found found = FindTables(connection, database, spec);
  if (Has(found, TableName(spec), spec)) return Made::kThere;
  if (Migrates(found, spec)) return Made::kMigrates;
  if (WasMoved(connection, database, spec, state)) return Made::kMoved;
  if (const auto other = found.find(TableName(spec)); other != found.end()) {
    const auto incarnation = IncarnationOf(other->second);
    if (!in_force || !incarnation) return OtherTableError(other->first, incarnation);
    if (auto status = CheckNoRows(connection, database, other->first, *incarnation); !status.ok()) {
      return status;
    }
    DropTable(connection, spec, shard);
  }
  if (const DatasetSpec next = NextSpec(spec); Has(found, TableName(next), spec)) {
    // Whoever was making it was cut short.
    RenameNext(connection, database, spec);
  } else {
    CreateTable(connection, spec, shard);
  }
  return Made::kThere;
}

}  // namespace

absl::Status CreateTables(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const std::string database = DatabaseName(SpaceOf(spec.shape), shard);
  const MigrationLock lock(connection, spec, shard);
  if (!lock.held()) return BusyError(spec, database);
  const ServerLock shard_lock(connection, {ShardLock(database)}, Holder::kStays);
  if (!shard_lock.held()) return BusyError(spec, database);
  const DatabaseState state = StateOf(connection, database);
  if (state == DatabaseState::kMissing) {
    return absl::FailedPreconditionError(
        fmt::format("there is no database {}: kv shards init makes it", database));
  }
  if (state == DatabaseState::kMoved) return WritesHeldError(MovedText(database));
  Reached("create.locked");
  const auto made = MakeTable(connection, spec, shard, state, /*in_force=*/false);
  if (!made.ok()) return made.status();
  return *made == Made::kMoved ? WritesHeldError(MovedText(database)) : absl::OkStatus();
}

absl::Status TablesBusyError(const std::string& database) {
  return absl::UnavailableError(fmt::format(
      "another process is working on the tables of {}, or is moving that shard; try again", database));
}

absl::Status CheckNameIsFree(Connection& connection, const DatasetSpec& spec, uint32_t first, uint32_t last) {
  const ShardSpace space = SpaceOf(spec.shape);
  // The server looks up the table in each database, without a list of all its tables. A database with what a
  // move has put away has a longer name.
  const std::string from = DatabaseName(space, first);
  Rows rows = connection.Ask(fmt::format(
      "SELECT table_comment FROM information_schema.tables WHERE table_schema BETWEEN '{}' AND '{}' AND "
      "LENGTH(table_schema) = {} AND table_name = '{}' AND table_comment <> '{}' LIMIT 1",
      from, DatabaseName(space, last), from.size(), TableName(spec), TableComment(spec)));
  return rows.Next() ? OtherTableError(TableName(spec), IncarnationOf(rows.Bytes(1))) : absl::OkStatus();
}

absl::StatusOr<FirstUse> MakeOnFirstUse(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                                        TableRecords& records) {
  // Most datasets have no record. Then a missing table is an error, for which no locks are needed.
  auto recorded = records.Find(spec, shard);
  if (!recorded.ok()) return recorded.status();
  if (!recorded->has_value()) return FirstUse::kNotHere;
  const std::string database = DatabaseName(SpaceOf(spec.shape), shard);
  // Whoever has a lock may be making this very table for another client, and must not be taken for dead.
  const ServerLock lock(connection, {TablesLock(spec, shard), ShardLock(database)}, Holder::kStays);
  if (!lock.held()) return FirstUse::kBusy;
  const DatabaseState state = StateOf(connection, database);
  if (state == DatabaseState::kMissing || state == DatabaseState::kMoved) return FirstUse::kNotHere;
  const Found found = FindTables(connection, database, spec);
  if (Has(found, TableName(spec), spec)) return FirstUse::kThere;
  if (Migrates(found, spec) || WasMoved(connection, database, spec, state)) return FirstUse::kNotHere;
  const DatasetSpec next = NextSpec(spec);
  const bool begun = Has(found, TableName(next), spec);
  recorded = records.Find(spec, shard);
  if (!recorded.ok()) return recorded.status();
  // A table that was made and is gone is lost, unless making it was cut short.
  if (!recorded->has_value() || (**recorded && !begun)) return FirstUse::kNotHere;
  Reached("first_use.locked");
  if (!begun) {
    DropTable(connection, next, shard);
    CreateTable(connection, next, shard);
  }
  Reached("first_use.made");
  // A drop of the dataset ends its record before it drops tables, and so does a migration before it begins.
  // So this fails where the table is not to be made any more.
  const auto noted = records.Add(spec, shard);
  const bool was_made = noted.ok() && *noted == TableRecords::Noted::kBefore && !begun;
  if (was_made || absl::IsNotFound(noted.status())) {
    DropTable(connection, next, shard);
    return FirstUse::kNotHere;
  }
  if (!noted.ok()) return noted.status();
  Reached("first_use.recorded");
  RenameNext(connection, database, spec);
  return FirstUse::kThere;
}

absl::Status MakeUnlessMade(Connection& connection, const DatasetSpec& spec, uint32_t shard,
                            TableRecords& records) {
  if (HasTables(connection, spec, shard)) return absl::OkStatus();
  constexpr int kMakeAttempts = 10;  // with waits of a second
  for (int attempt = 1; attempt <= kMakeAttempts; ++attempt) {
    const auto made = MakeOnFirstUse(connection, spec, shard, records);
    if (!made.ok()) return made.status();
    if (*made != FirstUse::kBusy) return absl::OkStatus();
  }
  return TablesBusyError(DatabaseName(SpaceOf(spec.shape), shard));
}

bool HasTables(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const Found found = FindTables(connection, DatabaseName(SpaceOf(spec.shape), shard), spec);
  return Has(found, TableName(spec), spec) || Migrates(found, spec);
}

absl::Status CheckEmpty(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const std::string database = DatabaseName(SpaceOf(spec.shape), shard);
  if (StateOf(connection, database) == DatabaseState::kMoved) return WritesHeldError(MovedText(database));
  return CheckNoRows(connection, database, spec, FindTables(connection, database, spec));
}

absl::Status DropTables(Connection& connection, const DatasetSpec& spec, uint32_t shard, Removed removed) {
  const std::string database = DatabaseName(SpaceOf(spec.shape), shard);
  const MigrationLock lock(connection, spec, shard);
  if (!lock.held()) return BusyError(spec, database);
  const ServerLock shard_lock(connection, {ShardLock(database)}, Holder::kStays);
  if (!shard_lock.held()) return BusyError(spec, database);
  // The caller retries where the map in force says by then that the shard is.
  if (StateOf(connection, database) == DatabaseState::kMoved) return WritesHeldError(MovedText(database));
  const Found found = FindTables(connection, database, spec);
  if (removed == Removed::kIfEmpty) {
    if (auto status = CheckNoRows(connection, database, spec, found); !status.ok()) return status;
  }
  Reached("drop.locked");
  const auto drop = [&](const std::string& table) {
    connection.Run(fmt::format("DROP TABLE IF EXISTS {}.{}", Quote(database), Quote(table)));
  };
  const std::string& base = TableName(spec);
  // Dropping a table drops its triggers, which write to the tables beside it: so those are dropped after it.
  if (Has(found, base, spec)) drop(base);
  if (const std::string next = TableName(NextSpec(spec)); Has(found, next, spec)) drop(next);
  for (const std::string_view side : kSides) {
    const std::string prefix = base + std::string(side);
    if (Has(found, prefix + "away", spec)) drop(prefix + "away");
    // A dirty log has no comment: it belongs to the incarnation whose state is beside it.
    const bool state = Has(found, prefix + "state", spec);
    if (found.contains(prefix + "dirty") && (state || !found.contains(prefix + "state")))
      drop(prefix + "dirty");
    if (state) drop(prefix + "state");
  }
  return absl::OkStatus();
}

namespace {

/// Returns those of `specs` whose tables a shard lacks, judged by names and comments alone.
absl::StatusOr<std::vector<DatasetSpec>> Lacking(Connection& connection, const std::string& database,
                                                 ShardSpace space, const std::vector<DatasetSpec>& specs) {
  Found tables;
  {
    Rows rows = connection.Ask(fmt::format(
        "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = '{}'",
        database));
    while (rows.Next()) tables.emplace(rows.Bytes(1), rows.Bytes(2));
  }
  std::vector<DatasetSpec> lacking;
  for (const DatasetSpec& spec : specs) {
    if (SpaceOf(spec.shape) == space && !Has(tables, TableName(spec), spec)) lacking.push_back(spec);
  }
  return lacking;
}

/// Makes a table that MakeShard has found missing, or notes why it is left alone. The caller holds the locks.
///
/// state    where the shard's tables are.
/// now      the catalog's datasets, read under the locks.
/// records  as of MakeShard.
absl::Status MakeMissing(Connection& connection, const DatasetSpec& spec, uint32_t shard, DatabaseState state,
                         const std::vector<DatasetSpec>& now, TableRecords* records, LeftAlone& left_alone) {
  const bool in_force = std::any_of(now.begin(), now.end(), [&](const DatasetSpec& one) {
    return one.incarnation == spec.incarnation && one.name == spec.name && one.engine == spec.engine;
  });
  if (!in_force) {
    ++left_alone[fmt::format("tables of '{}', which was dropped or migrated meanwhile", spec.name)];
    return absl::OkStatus();
  }
  if (records != nullptr) {
    const auto noted = records->Add(spec, shard);
    if (!noted.ok() && !absl::IsNotFound(noted.status())) return noted.status();
  }
  const auto made = MakeTable(connection, spec, shard, state, /*in_force=*/true);
  if (!made.ok()) return made.status();
  if (*made == Made::kMigrates) {
    ++left_alone[fmt::format(
        "tables of '{}', which migrates and has them under another name for now (kv migrate status)",
        spec.name)];
  }
  if (*made == Made::kMoved) {
    ++left_alone[fmt::format("tables of '{}' that were moved to another host", spec.name)];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeShard(Connection& connection, ShardSpace space, uint32_t shard, uint32_t mod_shards,
                       const std::vector<DatasetSpec>& specs, const ReadSpecs& read, TableRecords* records,
                       LeftAlone& left_alone) {
  const std::string database = DatabaseName(space, shard);
  DatabaseState state = StateOf(connection, database);
  const auto missing = state == DatabaseState::kMissing || state == DatabaseState::kMoved
                           ? absl::StatusOr<std::vector<DatasetSpec>>(specs)
                           : Lacking(connection, database, space, specs);
  if (!missing.ok()) return missing.status();
  // In the usual case nothing is missing.
  if (state == DatabaseState::kHere && missing->empty() &&
      (space == ShardSpace::kId || ReadModShards(connection, shard) > 0)) {
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (const DatasetSpec& spec : *missing) {
    if (SpaceOf(spec.shape) == space) names.push_back(TablesLock(spec, shard));
  }
  std::sort(names.begin(), names.end());
  const ServerLock lock(connection, names, Holder::kEnds);
  const ServerLock shard_lock(connection, {ShardLock(database)}, Holder::kStays);
  if (!lock.held() || !shard_lock.held()) {
    return TablesBusyError(database);
  }
  state = StateOf(connection, database);
  if (state == DatabaseState::kMoved) {
    ++left_alone
        ["shards whose tables are put away: they are moving to another host, or were moved there (kv "
         "shards move status)"];
    return absl::OkStatus();
  }
  CreateShard(connection, space, shard, mod_shards);
  if (names.empty()) return absl::OkStatus();
  // The catalog's answer holds until the locks are released: a drop, or the end of a migration, changes the
  // catalog before it takes them.
  Reached("init.locked");
  const auto now = read();
  if (!now.ok()) return now.status();
  Reached("init.read");
  for (const DatasetSpec& spec : *missing) {
    if (SpaceOf(spec.shape) != space) continue;
    if (auto status = MakeMissing(connection, spec, shard, state, *now, records, left_alone); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
