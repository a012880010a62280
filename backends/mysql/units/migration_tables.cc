#include "backends/mysql/units/migration_tables.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/sql_templates.h"

namespace kvstore::mysql {
namespace {

using State = EndpointState;

constexpr int kLockWaitTimeout = 1205;

/// Returns the family of the dataset's table.
TableFamily FamilyOf(const DatasetSpec& spec) {
  return {.space = SpaceOf(spec.shape), .name = TableName(spec), .newest_last = !HasDescendingKeys(spec)};
}

/// The names in SQL of what a migration makes on a shard.
struct Names {
  TableFamily family;
  std::string database;
  std::string base;
  std::string away;
  std::string state;
  std::string dirty;

  Names(const DatasetSpec& spec, uint32_t shard)
      : family(FamilyOf(spec)),
        database(DatabaseName(family.space, shard)),
        base(Qualified(family.name)),
        away(Qualified(family.Beside("away"))),
        state(Qualified(family.Beside("state"))),
        dirty(Qualified(family.Beside("dirty"))) {}
  std::string Qualified(const std::string& name) const {
    return fmt::format("{}.{}", Quote(database), Quote(name));
  }
};

/// The key of a unit: the dirty log's columns for it, and the names of the columns of the dataset's table
/// that triggers copy to these.
struct Key {
  std::string columns;
  std::vector<std::string> names;
};

Key KeyOf(Shape shape) {
  switch (shape) {
    case Shape::kRows:
      return {"k1 VARBINARY(1024) NOT NULL, k2 VARBINARY(1024) NOT NULL", {"row_key", "column_name"}};
    case Shape::kObjects:
      return {"k1 BIGINT UNSIGNED NOT NULL", {"local_id"}};
    case Shape::kMappings:
      break;
  }
  return {"k1 BIGINT UNSIGNED NOT NULL, k2 BIGINT UNSIGNED NOT NULL", {"from_id", "to_id"}};
}

/// Returns the statement of a trigger that records the key of `row`, which is NEW or OLD.
std::string Record(const Names& names, const Key& key, std::string_view row) {
  std::string columns;
  std::string values;
  for (size_t i = 0; i < key.names.size(); ++i) {
    columns += fmt::format("{}k{}", i == 0 ? "" : ", ", i + 1);
    values += fmt::format("{}{}.{}", i == 0 ? "" : ", ", row, key.names[i]);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({});", names.dirty, columns, values);
}

struct Event {
  const char* trigger;
  const char* name;
};
constexpr std::array<Event, 3> kEvents = {{{"ai", "INSERT"}, {"au", "UPDATE"}, {"ad", "DELETE"}}};

std::set<std::string> TriggersOf(Connection& connection, const Names& names) {
  std::set<std::string> found;
  Rows rows = connection.Ask(fmt::format(
      "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '{}' AND "
      "trigger_name IN ('{}', '{}', '{}')",
      names.database, names.family.Beside("ai"), names.family.Beside("au"), names.family.Beside("ad")));
  while (rows.Next()) found.insert(rows.Bytes(1));
  return found;
}

void MakeTriggers(Connection& connection, const DatasetSpec& spec, const Names& names,
                  const std::string& table) {
  const Key key = KeyOf(spec.shape);
  connection.Run(fmt::format(fmt::runtime(kMigrationDirtySql), fmt::arg("dirty", names.dirty),
                             fmt::arg("columns", key.columns)));
  const auto there = TriggersOf(connection, names);
  for (const Event& event : kEvents) {
    const std::string name = names.family.Beside(event.trigger);
    if (there.contains(name)) continue;
    const bool update = event.name == std::string_view("UPDATE");
    std::string record = Record(names, key, event.name == std::string_view("INSERT") ? "NEW" : "OLD");
    if (update) {
      // KVStore's own statements change no key, but an operator's may.
      std::string changed;
      for (const std::string& column : key.names) {
        changed += fmt::format("{}OLD.{} <> NEW.{}", changed.empty() ? "" : " OR ", column, column);
      }
      record += fmt::format(" IF {} THEN {} END IF;", changed, Record(names, key, "NEW"));
    }
    connection.Run(fmt::format(fmt::runtime(kMigrationTriggerSql), fmt::arg("trigger", names.Qualified(name)),
                               fmt::arg("event", event.name), fmt::arg("table", table),
                               fmt::arg("state", names.state), fmt::arg("record", record),
                               fmt::arg("frozen", kFrozenMessage)));
  }
}

void DropTriggers(Connection& connection, const Names& names) {
  for (const std::string& trigger : TriggersOf(connection, names)) {
    connection.Run("DROP TRIGGER IF EXISTS " + names.Qualified(trigger));
  }
  connection.Run("DROP TABLE IF EXISTS " + names.dirty);
}

/// Returns text that names the connection with the oldest open transaction, mostly the one that is waited
/// for; empty if there is none, or it cannot be told.
std::string OldestTransaction(Connection& connection) {
  try {
    Rows rows = connection.Ask(
        "SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, NOW()) FROM "
        "information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID() ORDER BY trx_started "
        "LIMIT 1");
    if (rows.Next()) {
      return fmt::format("; connection {} has had a transaction open for {} s", rows.Uint(1), rows.Uint(2));
    }
  } catch (const sql::SQLException&) {
    // The user may lack the right to see transactions of other users.
  }
  return "";
}

/// Limits the connection's waits for locks of rows and of tables to a second, because clients' calls queue
/// behind such a wait. The limits before are put back at the end.
class ShortWaits {
 public:
  explicit ShortWaits(Connection& connection) : connection_(connection) {
    connection_.Run(
        "SET @kv_lock_wait = @@innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = 1, SESSION "
        "lock_wait_timeout = 1");
  }
  ~ShortWaits() {
    try {
      connection_.Run(
          "SET SESSION innodb_lock_wait_timeout = @kv_lock_wait, SESSION lock_wait_timeout = @kv_lock_wait");
    } catch (const sql::SQLException&) {
      // The connection is gone.
    }
  }
  ShortWaits(const ShortWaits&) = delete;
  ShortWaits& operator=(const ShortWaits&) = delete;

 private:
  Connection& connection_;
};

/// Makes a change that may have to wait for locks of clients' transactions. Returns UNAVAILABLE, with the
/// connection that seems to hold them, after a second: the caller retries, and clients get through in
/// between.
absl::Status ChangeSoon(Connection& connection, const std::function<absl::Status()>& change) {
  try {
    const ShortWaits waits(connection);
    return change();
  } catch (const sql::SQLException& error) {
    if (error.getErrorCode() != kLockWaitTimeout) throw;
    return absl::UnavailableError(fmt::format("a client's transaction blocks the change and does not end{}",
                                              OldestTransaction(connection)));
  }
}

absl::Status IllegalTransitionError(const DatasetSpec& spec, State from, State to) {
  return absl::FailedPreconditionError(
      fmt::format("dataset: '{}' is {} there, which does not become {}", spec.name, Name(from), Name(to)));
}

}  // namespace

absl::Status MigrationLockedError(const DatasetSpec& spec) {
  return absl::UnavailableError(
      fmt::format("dataset: another worker of the migration of '{}' is working on this shard", spec.name));
}

DatasetSpec AwaySpec(DatasetSpec spec) {
  spec.table = FamilyOf(spec).Beside("away");
  return spec;
}

// ---- reading ----

ShardMigration ReadShardMigration(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const Names names(spec, shard);
  ShardMigration migration;
  {
    const std::string away = names.family.Beside("away");
    const std::string state = names.family.Beside("state");
    const std::string dirty = names.family.Beside("dirty");
    Rows rows =
        connection.Ask(fmt::format("SELECT table_name, table_comment, engine FROM information_schema.tables "
                                   "WHERE table_schema = '{}' AND "
                                   "table_name IN ('{}', '{}', '{}', '{}')",
                                   names.database, names.family.name, away, state, dirty));
    while (rows.Next()) {
      const std::string name = rows.Bytes(1);
      const bool ours = rows.Bytes(2) == TableComment(spec);
      if (name == names.family.name) {
        // On another engine it is the table of the migration's other side.
        migration.base = ours && EngineName(spec) == rows.Bytes(3);
        migration.leftover = !ours;
      }
      if (name == away) migration.away = ours;
      if (name == state) migration.state = ours;
      if (name == dirty) migration.dirty = true;
    }
  }
  migration.at = migration.base ? State::kServing : State::kAbsent;
  if (!migration.state) return migration;
  Rows rows = connection.Ask(fmt::format("SELECT epoch, state, capture FROM {} WHERE one = 1", names.state));
  if (!rows.Next()) {
    migration.state = false;
    return migration;
  }
  migration.epoch = rows.Uint(1);
  migration.at = static_cast<State>(rows.Uint(2));
  migration.capture = rows.Uint(3) != 0;
  return migration;
}

// ---- changing ----

namespace {

absl::Status RaiseNow(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch) {
  const Names names(spec, shard);
  const ShardMigration migration = ReadShardMigration(connection, spec, shard);
  if (migration.state && migration.epoch >= epoch) {
    return absl::AbortedError(
        fmt::format("epoch: {} is not above {}, which another worker has", epoch, migration.epoch));
  }
  if (!migration.state) {
    // If these tables are there, a dropped dataset of the same name has left them.
    connection.Run(fmt::format("DROP TABLE IF EXISTS {}, {}", names.state, names.dirty));
    connection.Run(fmt::format(fmt::runtime(kMigrationStateSql), fmt::arg("state", names.state),
                               fmt::arg("comment", TableComment(spec))));
    connection.Run(fmt::format("INSERT IGNORE INTO {} VALUES (1, {}, {}, 0)", names.state, epoch,
                               static_cast<int>(migration.at)));
    return absl::OkStatus();
  }
  connection.Run(fmt::format("UPDATE {} SET epoch = {} WHERE one = 1", names.state, epoch));
  return absl::OkStatus();
}

/// Makes one transition of a dataset on a shard, which the caller has found to be legal.
class Transition {
 public:
  /// before  what there is on the shard.
  Transition(Connection& connection, const DatasetSpec& spec, uint32_t shard, const Names& names,
             const ShardMigration& before)
      : connection_(connection), spec_(spec), shard_(shard), names_(names), before_(before) {}

  absl::Status To(State state, bool capture) {
    switch (state) {
      case State::kAbsent:
        return ToAbsent();
      case State::kImporting:
        return ToImporting(capture);
      case State::kServing:
        return ToServing(capture);
      case State::kFrozen:
        Set(State::kFrozen, true);
        return absl::OkStatus();
      case State::kMoved:
        return ToMoved(capture);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ToAbsent() {
    DropTriggers(connection_, names_);
    connection_.Run("DROP TABLE IF EXISTS " + names_.away);
    connection_.Run("DROP TABLE IF EXISTS " + names_.state);
    return absl::OkStatus();
  }

  absl::Status ToImporting(bool capture) {
    if (before_.base) {
      return absl::FailedPreconditionError(fmt::format("dataset: '{}' is there already", spec_.name));
    }
    if (before_.leftover) {
      if (auto status = DropLeftover(); !status.ok()) return status;
    }
    if (!before_.away) {
      DropTable(connection_, AwaySpec(spec_), shard_);
      CreateTable(connection_, AwaySpec(spec_), shard_);
    }
    if (capture && !before_.capture) MakeTriggers(connection_, spec_, names_, names_.away);
    Set(State::kImporting, capture);
    if (!capture && before_.dirty) DropTriggers(connection_, names_);
    return absl::OkStatus();
  }

  /// Drops the table that has the name which the copy gets when it serves, if it is empty. This dataset's
  /// migration is in force, so no other dataset of this catalog has the name; a table with rows may belong to
  /// another catalog.
  absl::Status DropLeftover() {
    if (connection_.Ask(fmt::format("SELECT 1 FROM {} LIMIT 1", names_.base)).Next()) {
      return absl::FailedPreconditionError(fmt::format(
          "the table {0} has rows, and is of another dataset of that name, which this catalog "
          "does not have; if nobody uses it, put it aside, which keeps its rows: RENAME TABLE {0} "
          "TO {1}",
          names_.base, names_.Qualified(names_.family.name + "_aside")));
    }
    DropTable(connection_, spec_, shard_);
    return absl::OkStatus();
  }

  absl::Status ToServing(bool capture) {
    if (capture && !before_.capture) {
      MakeTriggers(connection_, spec_, names_, before_.away ? names_.away : names_.base);
    }
    // From here on LockState keeps workers from writing to the table.
    Set(State::kServing, capture);
    if (before_.away) Rename(names_.away, names_.base);
    if (capture) return absl::OkStatus();
    DropTriggers(connection_, names_);
    connection_.Run("DROP TABLE IF EXISTS " + names_.state);
    return absl::OkStatus();
  }

  absl::Status ToMoved(bool capture) {
    // The table is renamed first, so that no client finds it when its triggers let writes pass again.
    if (before_.base) Rename(names_.base, names_.away);
    Set(State::kMoved, capture);
    if (!capture && before_.dirty) DropTriggers(connection_, names_);
    return absl::OkStatus();
  }

  /// Writes the state. Waits for writes in flight, whose triggers have locked it.
  void Set(State to, bool captures) {
    if (before_.at == to && before_.capture == captures) return;
    connection_.Run(fmt::format("UPDATE {} SET state = {}, capture = {} WHERE one = 1", names_.state,
                                static_cast<int>(to), captures ? 1 : 0));
  }
  void Rename(const std::string& from, const std::string& to) {
    connection_.Run(fmt::format("RENAME TABLE {} TO {}", from, to));
  }

  Connection& connection_;
  const DatasetSpec& spec_;
  const uint32_t shard_;
  const Names& names_;
  const ShardMigration& before_;
};

absl::Status TransitionNow(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                           State state, bool capture) {
  const Names names(spec, shard);
  const ShardMigration migration = ReadShardMigration(connection, spec, shard);
  if (!migration.state) {
    // A sweep that was here before may have ended the migration on this shard.
    if (state == State::kAbsent && !migration.base && !migration.away) return absl::OkStatus();
    if (state == State::kServing && !capture && migration.base) return absl::OkStatus();
  }
  if (!migration.state || migration.epoch != epoch) {
    return absl::AbortedError(fmt::format(
        "the migration's worker has epoch {}, another one has taken over with {}", epoch, migration.epoch));
  }
  if (!MayTransition(migration.at, migration.capture, state)) {
    return IllegalTransitionError(spec, migration.at, state);
  }
  return Transition(connection, spec, shard, names, migration).To(state, capture);
}

}  // namespace

absl::Status RaiseEpoch(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch) {
  return ChangeSoon(connection, [&] { return RaiseNow(connection, spec, shard, epoch); });
}

absl::Status TransitionShard(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                             State state, bool capture) {
  return ChangeSoon(connection,
                    [&] { return TransitionNow(connection, spec, shard, epoch, state, capture); });
}

absl::Status ReassertShard(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                           State state, bool capture) {
  const State at = ReadShardMigration(connection, spec, shard).at;
  const auto transition = [&](State to, bool captures) {
    return TransitionShard(connection, spec, shard, epoch, to, captures);
  };
  absl::Status status;
  if (state == State::kServing && at == State::kAbsent) {
    status = transition(State::kImporting, capture);
  } else if (state == State::kMoved && (at == State::kAbsent || at == State::kImporting)) {
    return transition(State::kImporting, capture);
  } else if (state == State::kMoved && at == State::kServing) {
    // A side can be frozen only while its writes are captured.
    status = transition(State::kServing, true);
    if (status.ok()) status = transition(State::kFrozen, true);
  }
  return status.ok() ? transition(state, capture) : status;
}

}  // namespace kvstore::mysql
