#include "backends/mysql/move_schema.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "backends/mysql/schema.h"
#include "backends/mysql/sql_templates.h"

namespace kvstore::mysql {
namespace {

using State = EndpointState;

constexpr int kLockWaitTimeout = 1205;

/// As the dataset's table has it.
TableFamily FamilyOf(const DatasetSpec& spec) {
  return {.space = SpaceOf(spec.shape), .name = TableName(spec), .newest_last = !HasDescendingKeys(spec)};
}

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

/// Columns of the dirty log, and what a trigger puts there of a row named NEW or OLD.
struct Key {
  std::string columns;
  std::vector<std::string> names;  // of the table
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
      // Our own writers change no key; others might.
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

/// Who has had a transaction open for longest: mostly the one that is waited for.
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
    // Not everybody may see the transactions of others.
  }
  return "";
}

/// Clients wait while this connection waits for locks, of rows and of tables: a second at a time.
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

/// Changes what transactions under way may hold. UNAVAILABLE, with the name of who holds it, if that takes
/// long: who asks again lets the clients through in between.
absl::Status ChangeSoon(Connection& connection, const std::function<absl::Status()>& change) {
  try {
    const ShortWaits waits(connection);
    return change();
  } catch (const sql::SQLException& error) {
    if (error.getErrorCode() != kLockWaitTimeout) throw;
    return absl::UnavailableError(
        fmt::format("a transaction does not come to its end{}", OldestTransaction(connection)));
  }
}

absl::Status NotLegal(const DatasetSpec& spec, State from, State to) {
  return absl::FailedPreconditionError(
      fmt::format("dataset: '{}' is {} there, which does not become {}", spec.name, Name(from), Name(to)));
}

}  // namespace

DatasetSpec Away(DatasetSpec spec) {
  spec.table = FamilyOf(spec).Beside("away");
  return spec;
}

// ---- looking ----

Moving ReadMoving(Connection& connection, const DatasetSpec& spec, uint32_t shard) {
  const Names names(spec, shard);
  Moving moving;
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
        // It may be the other side's.
        moving.base = ours && EngineName(spec) == rows.Bytes(3);
        moving.leftover = !ours;
      }
      if (name == away) moving.away = ours;
      if (name == state) moving.state = ours;
      if (name == dirty) moving.dirty = true;
    }
  }
  moving.at = moving.base ? State::kServing : State::kAbsent;
  if (!moving.state) return moving;
  Rows rows = connection.Ask(fmt::format("SELECT epoch, state, capture FROM {} WHERE one = 1", names.state));
  if (!rows.Next()) {
    moving.state = false;
    return moving;
  }
  moving.epoch = rows.Uint(1);
  moving.at = static_cast<State>(rows.Uint(2));
  moving.capture = rows.Uint(3) != 0;
  return moving;
}

bool HasMigration(Connection& connection, const Table& table) {
  Rows rows = connection.Ask(fmt::format(
      "SELECT 1 FROM information_schema.tables WHERE table_schema = '{0}' AND table_name IN ('{1}$state', "
      "'{1}$r$state')",
      DatabaseName(table.family->space, table.shard), table.family->BaseName()));
  return rows.Next();
}

std::string StateTable(const Table& table) {
  return fmt::format("{}.{}", Quote(DatabaseName(table.family->space, table.shard)),
                     Quote(table.family->Beside("state")));
}

std::string DirtyTable(const Table& table) {
  return fmt::format("{}.{}", Quote(DatabaseName(table.family->space, table.shard)),
                     Quote(table.family->Beside("dirty")));
}

// ---- changing ----

namespace {

absl::Status RaiseNow(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch) {
  const Names names(spec, shard);
  const Moving moving = ReadMoving(connection, spec, shard);
  if (moving.state && moving.epoch >= epoch) {
    return absl::AbortedError(
        fmt::format("epoch: {} is not above {}, which another worker has", epoch, moving.epoch));
  }
  if (!moving.state) {
    // What a dataset of the same name left.
    connection.Run(fmt::format("DROP TABLE IF EXISTS {}, {}", names.state, names.dirty));
    connection.Run(fmt::format(fmt::runtime(kMigrationStateSql), fmt::arg("state", names.state),
                               fmt::arg("comment", TableComment(spec))));
    connection.Run(fmt::format("INSERT IGNORE INTO {} VALUES (1, {}, {}, 0)", names.state, epoch,
                               static_cast<int>(moving.at)));
    return absl::OkStatus();
  }
  connection.Run(fmt::format("UPDATE {} SET epoch = {} WHERE one = 1", names.state, epoch));
  return absl::OkStatus();
}

absl::Status EnterNow(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                      State state, bool capture) {
  const Names names(spec, shard);
  const Moving moving = ReadMoving(connection, spec, shard);
  if (!moving.state) {
    // A sweep that got here before.
    if (state == State::kAbsent && !moving.base && !moving.away) return absl::OkStatus();
    if (state == State::kServing && !capture && moving.base) return absl::OkStatus();
  }
  if (!moving.state || moving.epoch != epoch) {
    return absl::AbortedError(fmt::format(
        "the migration's worker has epoch {}, another one has taken over with {}", epoch, moving.epoch));
  }
  // Waits for the writes under way, which hold it.
  const auto set = [&](State to, bool captures) {
    if (moving.at == to && moving.capture == captures) return;
    connection.Run(fmt::format("UPDATE {} SET state = {}, capture = {} WHERE one = 1", names.state,
                               static_cast<int>(to), captures ? 1 : 0));
  };
  const auto rename = [&](const std::string& from, const std::string& to) {
    connection.Run(fmt::format("RENAME TABLE {} TO {}", from, to));
  };
  switch (state) {
    case State::kAbsent: {
      if (moving.at == State::kServing || moving.at == State::kFrozen)
        return NotLegal(spec, moving.at, state);
      DropTriggers(connection, names);
      connection.Run("DROP TABLE IF EXISTS " + names.away);
      connection.Run("DROP TABLE IF EXISTS " + names.state);
      return absl::OkStatus();
    }
    case State::kImporting: {
      if (moving.at != State::kImporting && moving.at != State::kAbsent)
        return NotLegal(spec, moving.at, state);
      if (moving.base) {
        return absl::FailedPreconditionError(fmt::format("dataset: '{}' is there already", spec.name));
      }
      // In the way of the name that the copy gets when it serves. This dataset's migration is in force, so
      // that no other one of the name can be in this catalog; in another one it could.
      if (moving.leftover) {
        if (connection.Ask(fmt::format("SELECT 1 FROM {} LIMIT 1", names.base)).Next()) {
          return absl::FailedPreconditionError(
              fmt::format("the table {} has rows, and is of another dataset of that name, which this catalog "
                          "does not have; if "
                          "nobody uses it, rename or drop it with SQL",
                          names.base));
        }
        DropTable(connection, spec, shard);
      }
      if (!moving.away) {
        DropTable(connection, Away(spec), shard);
        CreateTable(connection, Away(spec), shard);
      }
      if (capture && !moving.capture) MakeTriggers(connection, spec, names, names.away);
      set(state, capture);
      if (!capture && moving.dirty) DropTriggers(connection, names);
      return absl::OkStatus();
    }
    case State::kServing: {
      if (moving.at == State::kAbsent) return NotLegal(spec, moving.at, state);
      if (capture && !moving.capture) {
        const std::string& table = moving.away ? names.away : names.base;
        MakeTriggers(connection, spec, names, table);
      }
      // From here on no worker writes to it.
      set(state, capture);
      if (moving.away) rename(names.away, names.base);
      if (capture) return absl::OkStatus();
      DropTriggers(connection, names);
      connection.Run("DROP TABLE IF EXISTS " + names.state);
      return absl::OkStatus();
    }
    case State::kFrozen:
      if (moving.at != State::kServing && moving.at != State::kFrozen)
        return NotLegal(spec, moving.at, state);
      if (!moving.capture) return NotLegal(spec, moving.at, state);
      set(state, true);
      return absl::OkStatus();
    case State::kMoved:
      if (moving.at != State::kFrozen && moving.at != State::kMoved) return NotLegal(spec, moving.at, state);
      // First its name: nobody finds it when the triggers let writes pass again.
      if (moving.base) rename(names.base, names.away);
      set(state, capture);
      if (!capture && moving.dirty) DropTriggers(connection, names);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RaiseEpoch(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch) {
  return ChangeSoon(connection, [&] { return RaiseNow(connection, spec, shard, epoch); });
}

absl::Status EnterState(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                        State state, bool capture) {
  return ChangeSoon(connection, [&] { return EnterNow(connection, spec, shard, epoch, state, capture); });
}

absl::Status ReassertState(Connection& connection, const DatasetSpec& spec, uint32_t shard, uint64_t epoch,
                           State state, bool capture) {
  const State at = ReadMoving(connection, spec, shard).at;
  const auto enter = [&](State to, bool captures) {
    return EnterState(connection, spec, shard, epoch, to, captures);
  };
  absl::Status status;
  if (state == State::kServing && at == State::kAbsent) {
    status = enter(State::kImporting, capture);
  } else if (state == State::kMoved && (at == State::kAbsent || at == State::kImporting)) {
    return enter(State::kImporting, capture);
  } else if (state == State::kMoved && at == State::kServing) {
    // Only what is captured can be frozen.
    status = enter(State::kServing, true);
    if (status.ok()) status = enter(State::kFrozen, true);
  }
  return status.ok() ? enter(state, capture) : status;
}

}  // namespace kvstore::mysql
