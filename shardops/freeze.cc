#include "shardops/freeze.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/driver/server_lock.h"
#include "backends/mysql/driver/tables.h"

namespace kvstore::shardops {
namespace {

using mysql::MovedName;

/// How long Freeze waits for a client's transaction that uses one of the tables.
constexpr int kLockWaitS = 1;

/// The statements that follow wait for at most kLockWaitS for clients' transactions. On MariaDB each of them
/// is to be made one that says so itself (Text).
class ShortWaits {
 public:
  explicit ShortWaits(mysql::Connection& connection, Engine engine)
      : connection_(connection), per_statement_(engine == Engine::kMariaDb) {
    if (per_statement_) return;
    {
      mysql::Rows rows = connection_.Ask("SELECT @@lock_wait_timeout");
      if (rows.Next()) usual_ = rows.Uint(1);
    }
    connection_.Run(fmt::format("SET SESSION lock_wait_timeout = {}", kLockWaitS));
  }
  ~ShortWaits() {
    if (per_statement_) return;
    try {
      connection_.Run(fmt::format("SET SESSION lock_wait_timeout = {}", usual_));
    } catch (const sql::SQLException&) {
      // The session has ended.
    }
  }
  ShortWaits(const ShortWaits&) = delete;
  ShortWaits& operator=(const ShortWaits&) = delete;

  std::string Text(const std::string& statement) const {
    if (!per_statement_) return statement;
    return fmt::format("SET STATEMENT lock_wait_timeout = {} FOR {}", kLockWaitS, statement);
  }

 private:
  mysql::Connection& connection_;
  const bool per_statement_;
  uint64_t usual_ = 0;
};

/// Unlocks what LOCK TABLES has locked when it goes out of scope, also if something throws.
class TableLocks {
 public:
  explicit TableLocks(mysql::Connection& connection) : connection_(connection) {}
  ~TableLocks() {
    try {
      connection_.Run("UNLOCK TABLES");
    } catch (const sql::SQLException&) {
      // The session has ended, and its locks with it.
    }
  }
  TableLocks(const TableLocks&) = delete;
  TableLocks& operator=(const TableLocks&) = delete;

 private:
  mysql::Connection& connection_;
};

/// Returns one statement that renames all tables of the shards from `from(database)` to `to(database)`; empty
/// if there are none.
template <typename From, typename To>
std::string Rename(const HostTables& tables, const MoveRange& shards, const From& from, const To& to) {
  std::vector<std::string> pairs;
  for (const std::string& database : shards.Databases()) {
    const auto found = tables.find(from(database));
    if (found == tables.end()) continue;
    for (const std::string& table : found->second) {
      pairs.push_back(fmt::format("{0}.{2} TO {1}.{2}", mysql::Quote(from(database)),
                                  mysql::Quote(to(database)), mysql::Quote(table)));
    }
  }
  if (pairs.empty()) return "";
  return fmt::format("RENAME TABLE {}", fmt::join(pairs, ", "));
}

std::string Same(const std::string& database) { return database; }

/// Drops a table that somebody created while the shard's own one was renamed, unless it has rows. The table
/// is locked, so that nobody writes between the check for rows and the drop. Throws sql::SQLException.
absl::Status DropGhost(HostAdmin& host, mysql::Connection& connection, const std::string& database,
                       const std::string& table, SkippedStatements& skipped) {
  const std::string name = fmt::format("{}.{}", mysql::Quote(database), mysql::Quote(table));
  const ShortWaits waits(connection, host.engine());
  connection.Run(waits.Text(fmt::format("LOCK TABLES {} WRITE", name)));
  const TableLocks locks(connection);
  const bool rows = connection.Ask(fmt::format("SELECT 1 FROM {} LIMIT 1", name)).Next();
  if (!rows) return skipped.Run(connection, {"DROP TABLE " + name});
  return Refuse(fmt::format(
      "{0}: the table {1} was made there while its shard moved, and has rows that clients were told of; the "
      "shard's own is {2}.{3}. Keep those rows: RENAME TABLE {1} TO a database of yours on {0}, run this "
      "command "
      "again, and put them into the dataset after that",
      host.host().ToString(), name, mysql::Quote(MovedName(database)), mysql::Quote(table)));
}

/// Drops the tables of the shards that somebody created beside the renamed ones (DropGhost), and returns the
/// tables that the host has then.
absl::StatusOr<HostTables> DropGhosts(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped) {
  auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  auto status = host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    for (const std::string& database : shards.Databases()) {
      const auto here = tables->find(database);
      const auto kept = tables->find(MovedName(database));
      if (here == tables->end() || kept == tables->end()) continue;
      for (const std::string& table : kept->second) {
        if (!here->second.contains(table)) continue;
        if (auto dropped = DropGhost(host, connection, database, table, skipped); !dropped.ok()) {
          return dropped;
        }
        here->second.erase(table);
      }
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return tables;
}

/// Drops those databases of the shards that are empty since their tables were renamed. Clients wait
/// meanwhile, so this looks at these databases only, not at all of the host (as ReadTables does).
absl::Status DropEmptied(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped) {
  return host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    for (const std::string& database : shards.Databases()) {
      const bool tables =
          connection
              .Ask(fmt::format("SELECT 1 FROM information_schema.tables WHERE table_schema = {} LIMIT 1",
                               Quoted(database)))
              .Next();
      if (tables) continue;
      const std::string drop = "DROP DATABASE IF EXISTS " + mysql::Quote(database);
      if (auto status = skipped.Run(connection, {drop}); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

/// Calls `work` while it holds the locks of the shards, so that nobody else creates or drops tables in them.
/// A connection that holds such a lock for longer than a second is ended; UNAVAILABLE if the lock is taken
/// even then.
absl::Status UnderLocks(HostAdmin& host, const MoveRange& shards,
                        const std::function<absl::Status(mysql::Connection&)>& work) {
  std::vector<std::string> locks;
  for (const std::string& database : shards.Databases()) locks.push_back(mysql::ShardLock(database));
  return host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    const mysql::ServerLock lock(connection, locks, mysql::Holder::kEnds);
    if (lock.held()) return work(connection);
    return absl::UnavailableError(
        fmt::format("{}: somebody else creates tables in shards {} now; run the command again",
                    host.host().ToString(), shards.ToString()));
  });
}

}  // namespace

absl::Status CreateMovedDatabases(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped) {
  std::vector<std::string> statements;
  for (const std::string& database : shards.Databases()) {
    statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(MovedName(database)));
  }
  return host.WithConnection(
      [&](mysql::Connection& connection) { return skipped.RunOutsideCopies(connection, statements); });
}

size_t CountSkipped(const MoveRange& shards) {
  // Freeze renames all tables at once and drops each database; Thaw renames the tables back.
  return shards.last - shards.first + 1 + 2;
}

absl::Status Freeze(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped) {
  return UnderLocks(host, shards, [&](mysql::Connection& connection) -> absl::Status {
    const auto tables = DropGhosts(host, shards, skipped);
    if (!tables.ok()) return tables.status();
    if (const std::string rename = Rename(*tables, shards, Same, MovedName); !rename.empty()) {
      const ShortWaits waits(connection, host.engine());
      if (auto status = skipped.Run(connection, {waits.Text(rename)}); !status.ok()) return status;
    }
    return DropEmptied(host, shards, skipped);
  });
}

absl::Status Thaw(HostAdmin& host, const MoveRange& shards, SkippedStatements& skipped) {
  return UnderLocks(host, shards, [&](mysql::Connection& connection) -> absl::Status {
    const auto tables = DropGhosts(host, shards, skipped);
    if (!tables.ok()) return tables.status();
    std::vector<std::string> homes;
    std::vector<std::string> places;
    for (const std::string& database : shards.Databases()) {
      if (!tables->contains(MovedName(database))) continue;
      // Must be the same as in sql/database.sql.
      homes.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(database) +
                      " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
      places.push_back("DROP DATABASE IF EXISTS " + mysql::Quote(MovedName(database)));
    }
    if (auto status = skipped.RunOutsideCopies(connection, homes); !status.ok()) return status;
    if (const std::string rename = Rename(*tables, shards, MovedName, Same); !rename.empty()) {
      const ShortWaits waits(connection, host.engine());
      if (auto status = skipped.Run(connection, {waits.Text(rename)}); !status.ok()) return status;
    }
    return skipped.RunOutsideCopies(connection, places);
  });
}

absl::Status DropEmptyDatabases(HostAdmin& host, const MoveRange& shards) {
  const auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  return host.WithConnection([&](mysql::Connection& connection) {
    for (const std::string& database : shards.Databases()) {
      const auto found = tables->find(database);
      if (found == tables->end() || !found->second.empty()) continue;
      connection.Run("DROP DATABASE " + mysql::Quote(database));
    }
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
