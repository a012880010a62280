#include "shardops/freeze.h"

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

/// Runs statements whose events in the binary log channels skip, and ordinary slaves do not.
void RunSkippedByChannels(mysql::Connection& connection, const std::vector<std::string>& statements) {
  connection.Run("SET SESSION skip_replication = 1");
  for (const std::string& statement : statements) connection.Run(statement);
  connection.Run("SET SESSION skip_replication = 0");
}

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
  return fmt::format("SET STATEMENT lock_wait_timeout = {} FOR RENAME TABLE {}", kLockWaitS,
                     fmt::join(pairs, ", "));
}

std::string Same(const std::string& database) { return database; }

/// Drops a table that somebody created while the shard's own one was renamed, unless it has rows. The table
/// is locked, so that nobody writes between the check for rows and the drop. Throws sql::SQLException.
absl::Status DropGhost(mysql::Connection& connection, const Host& host, const std::string& database,
                       const std::string& table) {
  const std::string name = fmt::format("{}.{}", mysql::Quote(database), mysql::Quote(table));
  connection.Run(
      fmt::format("SET STATEMENT lock_wait_timeout = {} FOR LOCK TABLES {} WRITE", kLockWaitS, name));
  const TableLocks locks(connection);
  const bool rows = connection.Ask(fmt::format("SELECT 1 FROM {} LIMIT 1", name)).Next();
  if (!rows) RunSkippedByChannels(connection, {"DROP TABLE " + name});
  if (!rows) return absl::OkStatus();
  return Refuse(fmt::format(
      "{0}: the table {1} was made there while its shard moved, and has rows that clients were told of; the "
      "shard's own is {2}.{3}. Keep those rows: RENAME TABLE {1} TO a database of yours on {0}, run this "
      "command "
      "again, and put them into the dataset after that",
      host.ToString(), name, mysql::Quote(MovedName(database)), mysql::Quote(table)));
}

/// Drops the tables of the shards that somebody created beside the renamed ones (DropGhost), and returns the
/// tables that the host has then.
absl::StatusOr<HostTables> DropGhosts(HostAdmin& host, const MoveRange& shards) {
  auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  auto status = host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    for (const std::string& database : shards.Databases()) {
      const auto here = tables->find(database);
      const auto kept = tables->find(MovedName(database));
      if (here == tables->end() || kept == tables->end()) continue;
      for (const std::string& table : kept->second) {
        if (!here->second.contains(table)) continue;
        if (auto dropped = DropGhost(connection, host.host(), database, table); !dropped.ok()) return dropped;
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
absl::Status DropEmptied(HostAdmin& host, const MoveRange& shards) {
  return host.WithConnection([&](mysql::Connection& connection) {
    for (const std::string& database : shards.Databases()) {
      const bool tables =
          connection
              .Ask(fmt::format("SELECT 1 FROM information_schema.tables WHERE table_schema = {} LIMIT 1",
                               Quoted(database)))
              .Next();
      if (!tables) RunSkippedByChannels(connection, {"DROP DATABASE IF EXISTS " + mysql::Quote(database)});
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

absl::Status CreateMovedDatabases(HostAdmin& host, const MoveRange& shards) {
  std::vector<std::string> statements;
  for (const std::string& database : shards.Databases()) {
    statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(MovedName(database)));
  }
  return host.WithConnection([&](mysql::Connection& connection) {
    RunSkippedByChannels(connection, statements);
    return absl::OkStatus();
  });
}

absl::Status Freeze(HostAdmin& host, const MoveRange& shards) {
  return UnderLocks(host, shards, [&](mysql::Connection& connection) -> absl::Status {
    const auto tables = DropGhosts(host, shards);
    if (!tables.ok()) return tables.status();
    const std::string rename = Rename(*tables, shards, Same, MovedName);
    if (!rename.empty()) RunSkippedByChannels(connection, {rename});
    return DropEmptied(host, shards);
  });
}

absl::Status Thaw(HostAdmin& host, const MoveRange& shards) {
  return UnderLocks(host, shards, [&](mysql::Connection& connection) -> absl::Status {
    const auto tables = DropGhosts(host, shards);
    if (!tables.ok()) return tables.status();
    std::vector<std::string> statements;
    std::vector<std::string> places;
    for (const std::string& database : shards.Databases()) {
      if (!tables->contains(MovedName(database))) continue;
      // Must be the same as in sql/database.sql.
      statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(database) +
                           " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
      places.push_back("DROP DATABASE IF EXISTS " + mysql::Quote(MovedName(database)));
    }
    if (std::string rename = Rename(*tables, shards, MovedName, Same); !rename.empty()) {
      statements.push_back(std::move(rename));
    }
    statements.insert(statements.end(), places.begin(), places.end());
    RunSkippedByChannels(connection, statements);
    return absl::OkStatus();
  });
}

absl::StatusOr<BlockedCommits> BlockedCommits::Block(const Host& host, const Access& access) {
  auto admin = HostAdmin::Open(host, access);
  if (!admin.ok()) return admin.status();
  auto status = (*admin)->WithConnection([](mysql::Connection& connection) {
    connection.Run("SET SESSION lock_wait_timeout = 1");
    connection.Run("BACKUP STAGE START");
    connection.Run("BACKUP STAGE BLOCK_COMMIT");
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return BlockedCommits(*std::move(admin));
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
