#include "backends/mysql/driver/connection.h"

#include <cppconn/exception.h>
#include <cppconn/statement.h>
#include <fmt/format.h>
#include <mysql_driver.h>

#include <charconv>
#include <tuple>
#include <utility>

#include "backend_api/outcome.h"
#include "backends/mysql/driver/errors.h"
#include "kvstore_api/limits.h"

namespace kvstore::mysql {
namespace {

sql::SQLString ToSql(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

/// Returns the connector's driver, to which each thread that uses it must be announced.
sql::mysql::MySQL_Driver& Driver() {
  static sql::mysql::MySQL_Driver* const driver = sql::mysql::get_mysql_driver_instance();
  struct ThreadGuard {
    ThreadGuard() { driver->threadInit(); }
    ~ThreadGuard() { driver->threadEnd(); }
  };
  static thread_local const ThreadGuard guard;
  return *driver;
}

/// Parses the first three numbers of "10.11.6-MariaDB-..." or "8.0.36"; those that are missing are 0.
std::tuple<int, int, int> ParseVersion(std::string_view text) {
  std::array<int, 3> parts{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc() || next == end) break;
    at = next + 1;
  }
  return {parts[0], parts[1], parts[2]};
}

}  // namespace

// ---- calls ----

Call& Call::Bind(uint64_t value) {
  statement_.setUInt64(++bound_, value);
  return *this;
}

Call& Call::Bind(std::string_view bytes) {
  // setBlob would not do: it consumes a stream, which the next execution would find at its end.
  statement_.setString(++bound_, ToSql(bytes));
  return *this;
}

uint64_t Call::Execute() {
  connection_.committing_ = writes_ && !connection_.in_transaction_;
  const int changed = statement_.executeUpdate();
  connection_.committing_ = false;
  return static_cast<uint64_t>(changed);
}

Rows Call::Query() {
  connection_.committing_ = writes_ && !connection_.in_transaction_;
  Rows rows(statement_.executeQuery());
  connection_.committing_ = false;
  return rows;
}

bool Rows::Next() {
  if (result_->next()) return true;
  if (Connection* const streams = std::exchange(streams_, nullptr)) streams->CheckEnded();
  return false;
}

// ---- connections ----

Connection::Connection(std::unique_ptr<sql::Connection> connection, size_t max_statements)
    : connection_(std::move(connection)),
      plain_(connection_->createStatement()),
      max_statements_(max_statements) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const Host& host, const MySqlOptions& options) {
  sql::ConnectOptionsMap map;
  map["hostName"] = ToSql(fmt::format("tcp://{}:{}", host.name, host.port));
  map["userName"] = ToSql(options.user);
  map["password"] = ToSql(options.password);
  map["OPT_CHARSET_NAME"] = ToSql("utf8mb4");
  map["OPT_CONNECT_TIMEOUT"] = static_cast<int>(options.pool.connect_timeout_s);
  map["OPT_READ_TIMEOUT"] = static_cast<int>(options.pool.read_timeout_s);
  map["OPT_WRITE_TIMEOUT"] = static_cast<int>(options.pool.write_timeout_s);
  // LOAD DATA LOCAL lets a server ask its client for any file, and this client never loads one.
  map["OPT_LOCAL_INFILE"] = 0;
  if (options.tls.required) {
    map["sslEnforce"] = true;
    if (!options.tls.ca.empty()) {
      map["sslCA"] = ToSql(options.tls.ca);
      map["sslVerify"] = true;
    }
    if (!options.tls.cert.empty()) map["sslCert"] = ToSql(options.tls.cert);
    if (!options.tls.key.empty()) map["sslKey"] = ToSql(options.tls.key);
  }
  try {
    std::unique_ptr<Connection> connection(
        new Connection(std::unique_ptr<sql::Connection>(Driver().connect(map)), options.pool.statements));
    if (auto status = connection->SetUp(options); !status.ok()) return status;
    return connection;
  } catch (const sql::SQLException& error) {
    return ToStatus(error);
  }
}

absl::Status Connection::SetUp(const MySqlOptions& options) {
  if (options.tls.required) {
    Rows cipher = Ask("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    if (!cipher.Next() || cipher.Bytes(2).empty()) {
      return absl::FailedPreconditionError(
          "tls: it is required, but the server does not encrypt; enable TLS on the server");
    }
  }
  Run(
      fmt::format("SET SESSION time_zone = '+00:00', "
                  "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
                  "innodb_lock_wait_timeout = {0}, lock_wait_timeout = {0}",
                  options.pool.lock_wait_s));
  Run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  Rows traits = Ask(fmt::format(
      "SELECT @@version, @@innodb_flush_log_at_trx_commit, @@max_allowed_packet, @@read_only, {}", kNowMs));
  traits.Next();
  SetServerMs(traits.Uint(5));
  const std::string version = traits.Bytes(1);
  const bool mariadb = version.find("MariaDB") != std::string::npos;
  // Older servers forget AUTO_INCREMENT at a restart and give IDs a second time, or know no descending keys.
  const std::tuple<int, int, int> oldest = mariadb ? std::tuple(10, 8, 0) : std::tuple(8, 0, 13);
  if (ParseVersion(version) < oldest) {
    return absl::FailedPreconditionError(
        fmt::format("the server's version is {}; MariaDB from 10.8 or MySQL from 8.0.13 is needed", version));
  }
  traits_.returning = mariadb;
  // MySQL caches statistics of tables for up to a day unless it is told not to.
  if (!mariadb && Ask("SHOW VARIABLES LIKE 'information_schema_stats_expiry'").Next()) {
    Run("SET SESSION information_schema_stats_expiry = 0");
  }
  traits_.flushes_each = traits.Uint(2) == 1;
  if (traits.Uint(3) < 2 * kMaxPutBytes) {
    return absl::FailedPreconditionError(fmt::format(
        "the server's max_allowed_packet is {}, at least {} is needed", traits.Uint(3), 2 * kMaxPutBytes));
  }
  // The host has been demoted, or is about to be: what it has may be stale from now on.
  if (!options.any_role && traits.Uint(4) != 0) {
    return WritesHeldError("the host is read-only: it is not a master, or is about to be demoted");
  }
  return absl::OkStatus();
}

Call Connection::Prepare(Sql sql, const Table& table, size_t count) {
  last_table_ = table;
  last_shards_ = ShardsOf(sql, count);
  committing_ = false;  // may be left from an earlier statement that the server refused
  const Key key{uint64_t{table.family->number} << 32 | table.shard,
                uint64_t{static_cast<uint8_t>(sql)} << 32 | count};
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    prepared_.splice(prepared_.begin(), prepared_, found->second);
  } else {
    std::unique_ptr<sql::PreparedStatement> statement(
        connection_->prepareStatement(ToSql(Text(sql, table, count, traits_.returning))));
    while (prepared_.size() >= max_statements_) {
      by_key_.erase(prepared_.back().key);
      prepared_.pop_back();
    }
    prepared_.push_front({key, std::move(statement)});
    by_key_.emplace(key, prepared_.begin());
  }
  return {*this, *prepared_.front().statement, Writes(sql)};
}

void Connection::Run(const std::string& text) { plain_->execute(ToSql(text)); }

Rows Connection::Ask(const std::string& text) { return Rows(plain_->executeQuery(ToSql(text))); }

Rows Connection::Stream(const std::string& text) {
  if (!streaming_) {
    streaming_.reset(connection_->createStatement());
    streaming_->setResultSetType(sql::ResultSet::TYPE_FORWARD_ONLY);
  }
  return Rows(streaming_->executeQuery(ToSql(text)), this);
}

void Connection::CheckEnded() {
  // The connector takes any error that comes in place of a row for the end of the rows, unless it is that the
  // connection was lost: a statement that somebody killed, or that ran for too long, would have a short
  // result. The server remembers the errors of the statement before; one that reads a table has it forget
  // those of older ones.
  Rows errors = Ask("SHOW ERRORS LIMIT 1");
  if (errors.Next()) {
    throw sql::SQLException(errors.Bytes(3), "HY000", static_cast<int>(errors.Uint(2)));
  }
  // With max_error_count = 0 it remembers only how many there were.
  Rows count = Ask("SHOW COUNT(*) ERRORS");
  if (count.Next() && count.Uint(1) == 0) return;
  throw sql::SQLException("the statement failed before its last row", "HY000", 0);
}

const std::string& Connection::BootId() {
  if (!boot_id_.empty()) return boot_id_;
  // The time and the uptime are read by one statement, during which the server's time does not advance.
  Rows rows =
      Ask(fmt::format("SELECT CONCAT(CAST(UNIX_TIMESTAMP() - variable_value AS UNSIGNED), '/', @@server_id) "
                      "FROM {}.global_status "
                      "WHERE variable_name = 'Uptime'",
                      traits_.returning ? "information_schema" : "performance_schema"));
  if (rows.Next()) boot_id_ = rows.Bytes(1);
  return boot_id_;
}

bool Connection::Alive() {
  try {
    Rows now = Ask(fmt::format("SELECT {}", kNowMs));
    now.Next();
    SetServerMs(now.Uint(1));
    return true;
  } catch (const sql::SQLException&) {
    return false;
  }
}

void Connection::SetServerMs(uint64_t now) {
  server_ms_ = now;
  server_ms_at_ = Clock::now();
}

void Connection::ForgetStatements() {
  by_key_.clear();
  prepared_.clear();
}

// ---- transactions ----

Transaction::Transaction(Connection& connection, Kind kind) : connection_(connection), kind_(kind) {
  connection_.in_transaction_ = true;
  connection_.committing_ = false;
  connection_.Run(kind == Kind::kSnapshot ? "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
                                          : "START TRANSACTION");
}

void Transaction::Commit() {
  connection_.committing_ = kind_ == Kind::kWrite;
  connection_.Run("COMMIT");
  connection_.committing_ = false;
  connection_.in_transaction_ = false;
}

Transaction::~Transaction() {
  // A commit that failed midway is not followed by a rollback: Fleet::Run discards the connection.
  if (!connection_.in_transaction_ || connection_.committing_) return;
  try {
    connection_.Run("ROLLBACK");
    connection_.in_transaction_ = false;
  } catch (const sql::SQLException&) {
    // The connection stays in_transaction, and so its pool closes it when it comes back.
  }
}

}  // namespace kvstore::mysql
