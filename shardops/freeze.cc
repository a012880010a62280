#include "shardops/freeze.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/server_lock.h"
#include "backends/mysql/tables.h"

namespace kvstore::shardops {
namespace {

using mysql::MovedName;

/// How long a transaction of a client may keep its tables.
constexpr int kLockWaitS = 1;

/// Events that a channel leaves out.
void Marked(mysql::Connection& connection, const std::vector<std::string>& statements) {
  connection.Run("SET SESSION skip_replication = 1");
  for (const std::string& statement : statements) connection.Run(statement);
  connection.Run("SET SESSION skip_replication = 0");
}

/// Lets go of what LOCK TABLES has, also if something throws.
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

/// One statement that renames all tables of `from(database)` to `to(database)`; empty: there are none.
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

/// Removes a table that was made while the real one was renamed, unless it has rows. Nobody can write it
/// between the look and the end. Throws sql::SQLException.
absl::Status DropGhost(mysql::Connection& connection, const Host& host, const std::string& database,
                       const std::string& table) {
  const std::string name = fmt::format("{}.{}", mysql::Quote(database), mysql::Quote(table));
  connection.Run(
      fmt::format("SET STATEMENT lock_wait_timeout = {} FOR LOCK TABLES {} WRITE", kLockWaitS, name));
  const TableLocks locks(connection);
  const bool rows = connection.Ask(fmt::format("SELECT 1 FROM {} LIMIT 1", name)).Next();
  if (!rows) Marked(connection, {"DROP TABLE " + name});
  if (!rows) return absl::OkStatus();
  return Refuse(fmt::format(
      "{0}: the table {1} was made there while its shard moved, and has rows that clients were told of; the "
      "shard's own is {2}.{3}. Keep those rows: RENAME TABLE {1} TO a database of yours on {0}, run this "
      "command "
      "again, and put them into the dataset after that",
      host.ToString(), name, mysql::Quote(MovedName(database)), mysql::Quote(table)));
}

/// The tables of a host, without those of these shards that were there twice.
absl::StatusOr<HostTables> DropGhosts(HostAdmin& host, const MoveRange& shards) {
  auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  auto status = host.Do([&](mysql::Connection& connection) -> absl::Status {
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

/// Removes the databases that tables were just taken from. Clients wait: only these are looked at.
absl::Status DropEmptied(HostAdmin& host, const MoveRange& shards) {
  return host.Do([&](mysql::Connection& connection) {
    for (const std::string& database : shards.Databases()) {
      const bool tables =
          connection
              .Ask(fmt::format("SELECT 1 FROM information_schema.tables WHERE table_schema = {} LIMIT 1",
                               Quoted(database)))
              .Next();
      if (!tables) Marked(connection, {"DROP DATABASE IF EXISTS " + mysql::Quote(database)});
    }
    return absl::OkStatus();
  });
}

/// Calls `work` while nobody else makes tables in these shards, or takes them away.
absl::Status UnderLocks(HostAdmin& host, const MoveRange& shards,
                        const std::function<absl::Status(mysql::Connection&)>& work) {
  std::vector<std::string> locks;
  for (const std::string& database : shards.Databases()) locks.push_back(mysql::ShardLock(database));
  return host.Do([&](mysql::Connection& connection) -> absl::Status {
    const mysql::ServerLock lock(connection, locks, mysql::Holder::kEnds);
    if (lock.held()) return work(connection);
    return absl::UnavailableError(fmt::format("{}: somebody makes tables in shards {}; run the command again",
                                              host.host().ToString(), shards.ToString()));
  });
}

}  // namespace

absl::Status MakePlace(HostAdmin& host, const MoveRange& shards) {
  std::vector<std::string> statements;
  for (const std::string& database : shards.Databases()) {
    statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(MovedName(database)));
  }
  return host.Do([&](mysql::Connection& connection) {
    Marked(connection, statements);
    return absl::OkStatus();
  });
}

absl::Status Freeze(HostAdmin& host, const MoveRange& shards) {
  return UnderLocks(host, shards, [&](mysql::Connection& connection) -> absl::Status {
    const auto tables = DropGhosts(host, shards);
    if (!tables.ok()) return tables.status();
    const std::string rename = Rename(*tables, shards, Same, MovedName);
    if (!rename.empty()) Marked(connection, {rename});
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
      // As sql/database.sql has it.
      statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(database) +
                           " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
      places.push_back("DROP DATABASE IF EXISTS " + mysql::Quote(MovedName(database)));
    }
    if (std::string rename = Rename(*tables, shards, MovedName, Same); !rename.empty()) {
      statements.push_back(std::move(rename));
    }
    statements.insert(statements.end(), places.begin(), places.end());
    Marked(connection, statements);
    return absl::OkStatus();
  });
}

absl::StatusOr<HeldCommits> HeldCommits::Hold(const Host& host, const Access& access) {
  auto admin = HostAdmin::Open(host, access);
  if (!admin.ok()) return admin.status();
  auto status = (*admin)->Do([](mysql::Connection& connection) {
    connection.Run("SET SESSION lock_wait_timeout = 1");
    connection.Run("BACKUP STAGE START");
    connection.Run("BACKUP STAGE BLOCK_COMMIT");
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return HeldCommits(*std::move(admin));
}

absl::Status RemoveEmpty(HostAdmin& host, const MoveRange& shards) {
  const auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  return host.Do([&](mysql::Connection& connection) {
    for (const std::string& database : shards.Databases()) {
      const auto found = tables->find(database);
      if (found == tables->end() || !found->second.empty()) continue;
      connection.Run("DROP DATABASE " + mysql::Quote(database));
    }
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
