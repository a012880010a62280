#include "backends/mysql/driver/log_connection.h"

#include <mysql.h>
// It uses what mysql.h declares.
#include <mariadb_rpl.h>

#include <algorithm>
#include <random>
#include <utility>

namespace kvstore::mysql {
namespace {

/// Where the events of a file begin; a server that is given GTIDs ignores it.
constexpr unsigned long kFirstOffset = 4;

/// Returns a server ID that no slave has: a server ends the connection of a slave when another one with its
/// ID connects, after which commits may wait for that slave without end. (0 would say that it is no slave,
/// but the library sends 1 in its place.)
uint32_t UnusedServerId() { return uint32_t{1} << 31 | std::random_device{}() >> 1; }

void SetLogin(MYSQL* connection, const MySqlOptions& login, unsigned silence_s) {
  const unsigned connect_s = login.pool.connect_timeout_s;
  const unsigned read_s = std::max<unsigned>(silence_s, login.pool.read_timeout_s);
  mysql_optionsv(connection, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
  mysql_optionsv(connection, MYSQL_OPT_READ_TIMEOUT, &read_s);
  mysql_optionsv(connection, MYSQL_OPT_WRITE_TIMEOUT, &read_s);
  if (!login.tls.required) return;
  const my_bool yes = 1;
  mysql_optionsv(connection, MYSQL_OPT_SSL_ENFORCE, &yes);
  if (!login.tls.ca.empty()) {
    mysql_optionsv(connection, MYSQL_OPT_SSL_CA, login.tls.ca.c_str());
    mysql_optionsv(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
  }
  if (!login.tls.cert.empty()) mysql_optionsv(connection, MYSQL_OPT_SSL_CERT, login.tls.cert.c_str());
  if (!login.tls.key.empty()) mysql_optionsv(connection, MYSQL_OPT_SSL_KEY, login.tls.key.c_str());
}

bool RunOn(MYSQL* connection, const std::string& statement) {
  return mysql_real_query(connection, statement.data(), statement.size()) == 0;
}

}  // namespace

struct LogConnection::Handles {
  Handles() : connection(mysql_init(nullptr)) {}
  ~Handles() {
    if (event != nullptr) mariadb_free_rpl_event(event);
    if (log != nullptr) mariadb_rpl_close(log);
    mysql_close(connection);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  MYSQL* connection;
  MARIADB_RPL* log = nullptr;
  MARIADB_RPL_EVENT* event = nullptr;
};

LogConnection::LogConnection() : handles_(std::make_unique<Handles>()) {}
LogConnection::~LogConnection() = default;

bool LogConnection::Connect(const Host& host, const MySqlOptions& login, unsigned silence_s,
                            const std::vector<std::string>& statements) {
  MYSQL* const connection = handles_->connection;
  SetLogin(connection, login, silence_s);
  return mysql_real_connect(connection, host.name.c_str(), login.user.c_str(), login.password.c_str(),
                            nullptr, host.port, nullptr, 0) != nullptr &&
         RunOn(connection, "SET @mariadb_slave_capability = 4") &&
         RunOn(connection, "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum") &&
         std::all_of(statements.begin(), statements.end(),
                     [&](const std::string& statement) { return RunOn(connection, statement); });
}

absl::StatusOr<std::string> LogConnection::AskOne(const std::string& query) const {
  MYSQL* const connection = handles_->connection;
  MYSQL_RES* const result = RunOn(connection, query) ? mysql_store_result(connection) : nullptr;
  if (result == nullptr) return absl::UnavailableError(mysql_error(connection));
  const MYSQL_ROW row = mysql_fetch_row(result);
  std::string value = row != nullptr && row[0] != nullptr ? row[0] : "";
  mysql_free_result(result);
  return value;
}

bool LogConnection::Begin(AtEnd at_end, const std::string& file) {
  MARIADB_RPL* const log = handles_->log = mariadb_rpl_init(handles_->connection);
  if (log == nullptr) return false;
  const unsigned flags = at_end == AtEnd::kEnds ? unsigned{MARIADB_RPL_BINLOG_DUMP_NON_BLOCK} : 0U;
  mariadb_rpl_optionsv(log, MARIADB_RPL_START, kFirstOffset);
  mariadb_rpl_optionsv(log, MARIADB_RPL_SERVER_ID, UnusedServerId());
  mariadb_rpl_optionsv(log, MARIADB_RPL_FLAGS, flags);
  mariadb_rpl_optionsv(log, MARIADB_RPL_VERIFY_CHECKSUM, 1U);
  if (!file.empty()) mariadb_rpl_optionsv(log, MARIADB_RPL_FILENAME, file.c_str(), file.size());
  return mariadb_rpl_open(log) == 0;
}

LogConnection::Event LogConnection::Next() {
  MARIADB_RPL_EVENT* const event = mariadb_rpl_fetch(handles_->log, std::exchange(handles_->event, nullptr));
  handles_->event = event;
  if (event == nullptr) return {.bytes = {}, .type = 0, .is_end = true};
  Event next{.bytes = {}, .type = static_cast<uint8_t>(event->event_type), .is_end = false};
  // The event is the end of what was received.
  const size_t size = event->event_length;
  if (event->raw_data != nullptr && size <= event->raw_data_size) {
    next.bytes = {reinterpret_cast<const char*>(event->raw_data) + event->raw_data_size - size, size};
  }
  return next;
}

LogConnection::Error LogConnection::error() const {
  if (const unsigned error = mysql_errno(handles_->connection); error != 0) {
    return {.number = error, .message = mysql_error(handles_->connection)};
  }
  if (handles_->log == nullptr || mariadb_rpl_errno(handles_->log) == 0) return {};
  return {.number = mariadb_rpl_errno(handles_->log), .message = mariadb_rpl_error(handles_->log)};
}

int LogConnection::socket() const { return static_cast<int>(mysql_get_socket(handles_->connection)); }

}  // namespace kvstore::mysql
