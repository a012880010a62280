#include "shardops/table_copy.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/mysql/driver/tables.h"
#include "shardops/snapshot.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;

/// How long the source may be too busy for a snapshot, and how often it is tried: each attempt has clients'
/// commits wait.
constexpr std::chrono::seconds kSnapshotWait{60};
constexpr std::chrono::milliseconds kSnapshotPoll{1000};
/// A statement that inserts rows ends when it is as long as this.
constexpr size_t kInsertBytes = size_t{1} << 20;

/// How the values of a column are written in a statement.
enum class Literal : uint8_t { kNumber, kText, kBinary };

struct Column {
  std::string name;
  Literal literal = Literal::kText;
};

/// Appends a text or bytes in quotes. Sound for any bytes: the session's character set is utf8mb4, in which a
/// quote and a backslash are never part of another character, and its SQL mode lets a backslash escape
/// (Connection::Open sets both).
void AppendQuoted(std::string& statement, std::string_view bytes) {
  statement += '\'';
  for (const char c : bytes) {
    if (c == '\'' || c == '\\') statement += '\\';
    statement += c;
  }
  statement += '\'';
}

void AppendValue(std::string& statement, const Rows& rows, uint32_t column, Literal literal) {
  if (rows.IsNull(column)) {
    statement += "NULL";
    return;
  }
  const std::string value = rows.Bytes(column);
  if (literal == Literal::kNumber) {
    statement += value;
    return;
  }
  if (literal == Literal::kBinary) statement += "_binary";
  AppendQuoted(statement, value);
}

/// Returns the columns that are stored.
std::vector<Column> ReadColumns(Connection& connection, const std::string& database,
                                const std::string& table) {
  std::vector<Column> columns;
  Rows rows = connection.Ask(fmt::format(
      "SELECT column_name, data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', "
      "'float', 'double', 'year'), data_type LIKE '%binary' OR data_type LIKE '%blob' OR data_type = 'bit' "
      "FROM information_schema.columns WHERE table_schema = {} AND table_name = {} AND "
      "generation_expression = '' ORDER BY ordinal_position",
      Quoted(database), Quoted(table)));
  while (rows.Next()) {
    const Literal bytes = rows.Uint(3) != 0 ? Literal::kBinary : Literal::kText;
    columns.push_back({rows.Bytes(1), rows.Uint(2) != 0 ? Literal::kNumber : bytes});
  }
  return columns;
}

/// Loads tables into the target, one after another.
class Loader {
 public:
  Loader(HostAdmin& to, const std::function<bool(uint64_t)>& progress) : to_(to), progress_(progress) {}

  /// Runs a statement at the target.
  absl::Status Run(const std::string& statement) {
    return to_.WithConnection([&](Connection& connection) {
      connection.Run(statement);
      return absl::OkStatus();
    });
  }

  void Begin(const std::string& table, const std::vector<Column>& columns) {
    std::vector<std::string> names;
    for (const Column& column : columns) names.push_back(mysql::Quote(column.name));
    head_ = fmt::format("INSERT INTO {} ({}) VALUES ", table, fmt::join(names, ", "));
  }
  absl::Status Add(const Rows& row, const std::vector<Column>& columns) {
    statement_ += statement_.empty() ? head_ + "(" : ", (";
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) statement_ += ", ";
      AppendValue(statement_, row, static_cast<uint32_t>(i + 1), columns[i].literal);
    }
    statement_ += ')';
    return statement_.size() < kInsertBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    if (!statement_.empty()) {
      if (auto status = Run(statement_); !status.ok()) return status;
    }
    bytes_ += statement_.size();
    statement_.clear();
    if (!progress_ || progress_(bytes_)) return absl::OkStatus();
    return absl::CancelledError("was stopped: run the command again to go on");
  }

 private:
  HostAdmin& to_;
  const std::function<bool(uint64_t)>& progress_;
  std::string head_;
  std::string statement_;
  uint64_t bytes_ = 0;
};

/// Begins the snapshot as soon as no statement is in the way.
absl::StatusOr<Position> AwaitSnapshot(HostAdmin& source, const Access& access) {
  const auto deadline = std::chrono::steady_clock::now() + kSnapshotWait;
  for (;;) {
    auto position = BeginSnapshotAtPosition(source, access);
    if (!absl::IsUnavailable(position.status())) return position;
    if (std::chrono::steady_clock::now() >= deadline) return position;
    std::this_thread::sleep_for(kSnapshotPoll);
  }
}

/// Has a connection ready to load: it holds the lock that DropDatabases waits for, and has found, after that,
/// that the host is still claimed. A process that was suspended for long must not load into a host that
/// another operator may have made a master by now.
absl::Status PrepareToLoad(HostAdmin& target, uint64_t claim) {
  return target.WithConnection([&](Connection& connection) -> absl::Status {
    Rows rows = connection.Ask(fmt::format("SELECT GET_LOCK('{}', 60), IS_USED_LOCK('{}') <=> {}",
                                           kLoadingLock, kOperatorLock, claim));
    if (!rows.Next() || rows.IsNull(1) || rows.Uint(1) != 1 || rows.Uint(2) != 1) {
      return absl::AbortedError(target.host().ToString() +
                                ": this command has lost its claim on the host: run it again");
    }
    connection.Run(
        "SET SESSION foreign_key_checks = 0, sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')");
    return absl::OkStatus();
  });
}

/// Reads a table, and loads it. If that fails, the statement that reads is ended: else the rest of the rows
/// would have to be read.
absl::Status CopyRows(HostAdmin& schema, HostAdmin& from, Loader& loader, const std::string& table,
                      const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(mysql::Quote(column.name));
  return from.WithConnection([&](Connection& reading) -> absl::Status {
    uint64_t id = 0;
    if (Rows rows = reading.Ask("SELECT CONNECTION_ID()"); rows.Next()) id = rows.Uint(1);
    loader.Begin(table, columns);
    Rows rows = reading.Stream(fmt::format("SELECT {} FROM {}", fmt::join(names, ", "), table));
    while (rows.Next()) {
      auto added = loader.Add(rows, columns);
      if (added.ok()) continue;
      schema
          .WithConnection([&](Connection& connection) {
            connection.Run(fmt::format("KILL CONNECTION {}", id));
            return absl::OkStatus();
          })
          .IgnoreError();
      return added;
    }
    return loader.Flush();
  });
}

/// Makes one table at the target and copies its rows.
absl::Status CopyTable(HostAdmin& schema, HostAdmin& from, Loader& loader, const std::string& database,
                       const std::string& table) {
  const std::string name = fmt::format("{}.{}", mysql::Quote(database), mysql::Quote(table));
  std::vector<Column> columns;
  std::string create;
  auto status = schema.WithConnection([&](Connection& connection) {
    columns = ReadColumns(connection, database, table);
    // It also says which number the next object gets, so that none is given a second time.
    Rows rows = connection.Ask("SHOW CREATE TABLE " + name);
    if (rows.Next()) create = rows.Bytes(2);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (status = loader.Run("USE " + mysql::Quote(database)); !status.ok()) return status;
  if (status = loader.Run(create); !status.ok()) return status;
  return CopyRows(schema, from, loader, name, columns);
}

}  // namespace

absl::StatusOr<Position> CopyTables(const Host& source, const Host& target, const Access& access,
                                    const CopyOptions& options) {
  const Access patient = WithLongReadTimeout(access);
  const auto schema = HostAdmin::Open(source, patient);
  if (!schema.ok()) return schema.status();
  const auto from = HostAdmin::Open(source, patient);
  if (!from.ok()) return from.status();
  const auto to = HostAdmin::Open(target, patient);
  if (!to.ok()) return to.status();
  if (auto status = PrepareToLoad(**to, options.claim); !status.ok()) return status;
  for (HostAdmin* const host : {schema->get(), from->get()}) {
    // A server ends a connection that is idle for long, or that takes its rows slowly, and it may have a
    // limit for SELECT.
    auto status = host->WithConnection([](Connection& connection) {
      connection.Run(
          "SET SESSION wait_timeout = 31536000, net_write_timeout = 86400, max_execution_time = 0");
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  auto position = AwaitSnapshot(**from, access);
  if (!position.ok()) return position;
  // A table that was made since is not in the snapshot: the server refuses to read it, and the copy ends.
  const auto tables = (*schema)->ReadTables();
  if (!tables.ok()) return tables.status();
  Loader loader(**to, options.progress);
  for (const std::string& database : options.databases) {
    const auto found = tables->find(database);
    if (found == tables->end()) continue;
    for (const std::string& table : found->second) {
      auto copied = CopyTable(**schema, **from, loader, database, table);
      if (!copied.ok()) return copied;
    }
  }
  return position;
}

}  // namespace kvstore::shardops
