#include "shardops/freeze.h"

#include <fmt/format.h>

#include <string>
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
  std::vector<std::string> locks;
  for (const std::string& database : shards.Databases()) locks.push_back(mysql::ShardLock(database));
  return host.Do([&](mysql::Connection& connection) -> absl::Status {
    // Nobody makes a table between the look and the renaming: it would stay behind.
    const mysql::ServerLock lock(connection, locks, mysql::Holder::kEnds);
    if (!lock.held()) {
      return absl::UnavailableError(
          fmt::format("{}: somebody makes tables in shards {}", host.host().ToString(), shards.ToString()));
    }
    const auto tables = host.ReadTables();
    if (!tables.ok()) return tables.status();
    const std::string rename = Rename(*tables, shards, Same, MovedName);
    if (!rename.empty()) Marked(connection, {rename});
    return absl::OkStatus();
  });
}

absl::Status Thaw(HostAdmin& host, const MoveRange& shards) {
  const auto tables = host.ReadTables();
  if (!tables.ok()) return tables.status();
  std::vector<std::string> statements;
  std::vector<std::string> places;
  for (const std::string& database : shards.Databases()) {
    if (!tables->contains(MovedName(database))) continue;
    statements.push_back("CREATE DATABASE IF NOT EXISTS " + mysql::Quote(database));
    places.push_back("DROP DATABASE IF EXISTS " + mysql::Quote(MovedName(database)));
  }
  if (std::string rename = Rename(*tables, shards, MovedName, Same); !rename.empty()) {
    statements.push_back(std::move(rename));
  }
  statements.insert(statements.end(), places.begin(), places.end());
  return host.Do([&](mysql::Connection& connection) {
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
