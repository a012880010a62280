#include "backends/mysql/changes/log_session.h"

#include <fmt/format.h>
#include <mysql.h>
#include <sys/socket.h>
#include <unistd.h>
// It uses what mysql.h declares.
#include <mariadb_rpl.h>

#include <cstdint>
#include <random>
#include <utility>

namespace kvstore::mysql {
namespace {

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: the server cannot serve what is behind the place.
constexpr unsigned kCannotServeLog = 1236;
/// ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR
constexpr unsigned kAccessDenied = 1045;
constexpr unsigned kRightMissing = 1227;
/// Where the events of a file begin; a server that is given GTIDs ignores it.
constexpr unsigned long kFirstOffset = 4;
/// How long a server may be silent that sends heartbeats each second.
constexpr unsigned kSilenceS = 15;

/// Returns a server ID that no slave has: a server ends the connection of a slave when another one with its
/// ID connects. (0 would say that it is no slave, but the library sends 1 in its place.)
uint32_t RandomServerId() { return uint32_t{1} << 31 | std::random_device{}() >> 1; }

void SetLogin(MYSQL* connection, const MySqlOptions& login) {
  const unsigned connect_s = login.pool.connect_timeout_s;
  const unsigned read_s = std::max(kSilenceS, login.pool.read_timeout_s);
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

absl::Status LogError(const std::string& host, unsigned error, std::string_view message) {
  if (error == kAccessDenied || error == kRightMissing) {
    return absl::FailedPreconditionError(fmt::format("{}: its binary log may not be read: {} (error {}); {}",
                                                     host, message, error, kRightsOfChanges));
  }
  if (error == kCannotServeLog) {
    return absl::OutOfRangeError(fmt::format("{}: {} (error {})", host, message, error));
  }
  return absl::UnavailableError(
      fmt::format("{}: its binary log cannot be read: {} (error {})", host, message, error));
}

}  // namespace

struct LogSession::Handles {
  Handles() : connection(mysql_init(nullptr)) {}
  ~Handles() {
    if (event != nullptr) mariadb_free_rpl_event(event);
    if (log != nullptr) mariadb_rpl_close(log);
    mysql_close(connection);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  bool Run(const std::string& statement) const {
    return mysql_real_query(connection, statement.data(), statement.size()) == 0;
  }

  /// Sets whether the server has been told that events with checksums are understood, as it writes them.
  bool AskChecksums(bool& checksums) const {
    if (!Run("SELECT @master_binlog_checksum")) return false;
    MYSQL_RES* const result = mysql_store_result(connection);
    if (result == nullptr) return false;
    const MYSQL_ROW row = mysql_fetch_row(result);
    checksums = row != nullptr && row[0] != nullptr && std::string_view(row[0]) != "NONE";
    mysql_free_result(result);
    return true;
  }

  MYSQL* connection;
  MARIADB_RPL* log = nullptr;
  MARIADB_RPL_EVENT* event = nullptr;
};

LogSession::LogSession(const Host& host, std::unique_ptr<Handles> handles, bool checksums)
    : host_(host.ToString()),
      handles_(std::move(handles)),
      checksums_(checksums),
      socket_(::dup(mysql_get_socket(handles_->connection))) {}

LogSession::~LogSession() {
  if (socket_ >= 0) ::close(socket_);
}

absl::StatusOr<std::unique_ptr<LogSession>> LogSession::Open(const Host& host, const MySqlOptions& login,
                                                             const LogVector& after, AtEnd at_end) {
  return Begin(host, login, &after, "", at_end);
}

absl::StatusOr<std::unique_ptr<LogSession>> LogSession::OpenFile(const Host& host, const MySqlOptions& login,
                                                                 const std::string& file) {
  return Begin(host, login, nullptr, file, AtEnd::kEnds);
}

absl::StatusOr<std::unique_ptr<LogSession>> LogSession::Begin(const Host& host, const MySqlOptions& login,
                                                              const LogVector* after, const std::string& file,
                                                              AtEnd at_end) {
  auto handles = std::make_unique<Handles>();
  MYSQL* const connection = handles->connection;
  SetLogin(connection, login);
  bool ready = mysql_real_connect(connection, host.name.c_str(), login.user.c_str(), login.password.c_str(),
                                  nullptr, host.port, nullptr, 0) != nullptr;
  // As a slave does: it understands GTIDs and the checksums of events, which the library verifies.
  ready = ready && handles->Run("SET @mariadb_slave_capability = 4") &&
          handles->Run("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum") &&
          handles->Run("SET @master_heartbeat_period = 1000000000");
  // In the strict mode the server checks that it has the very transactions of the place, so that nobody goes
  // on behind some that were lost.
  if (after != nullptr) {
    ready = ready && handles->Run("SET @slave_connect_state = '" + after->ToString() + "'") &&
            handles->Run("SET @slave_gtid_strict_mode = 1") &&
            handles->Run("SET @slave_gtid_ignore_duplicates = 0");
  }
  bool checksums = false;
  ready = ready && handles->AskChecksums(checksums);
  if (ready) handles->log = mariadb_rpl_init(connection);
  if (handles->log != nullptr) {
    mariadb_rpl_optionsv(handles->log, MARIADB_RPL_START, kFirstOffset);
    mariadb_rpl_optionsv(handles->log, MARIADB_RPL_SERVER_ID, RandomServerId());
    const unsigned flags = at_end == AtEnd::kEnds ? unsigned{MARIADB_RPL_BINLOG_DUMP_NON_BLOCK} : 0U;
    mariadb_rpl_optionsv(handles->log, MARIADB_RPL_FLAGS, flags);
    mariadb_rpl_optionsv(handles->log, MARIADB_RPL_VERIFY_CHECKSUM, 1U);
    if (!file.empty()) mariadb_rpl_optionsv(handles->log, MARIADB_RPL_FILENAME, file.c_str(), file.size());
  }
  if (handles->log == nullptr || mariadb_rpl_open(handles->log) != 0) {
    return LogError(host.ToString(), mysql_errno(connection), mysql_error(connection));
  }
  return std::unique_ptr<LogSession>(new LogSession(host, std::move(handles), checksums));
}

absl::StatusOr<std::string_view> LogSession::Next() {
  MARIADB_RPL_EVENT* const event = mariadb_rpl_fetch(handles_->log, std::exchange(handles_->event, nullptr));
  handles_->event = event;
  if (event == nullptr) {
    const unsigned error = mysql_errno(handles_->connection);
    const unsigned log_error = mariadb_rpl_errno(handles_->log);
    if (error == 0 && log_error == 0) return std::string_view();
    if (error == 0) return LogError(host_, log_error, mariadb_rpl_error(handles_->log));
    return LogError(host_, error, mysql_error(handles_->connection));
  }
  // The event is the end of what was received.
  const size_t size = event->event_length;
  if (event->raw_data != nullptr && size <= event->raw_data_size) {
    return std::string_view(reinterpret_cast<const char*>(event->raw_data) + event->raw_data_size - size,
                            size);
  }
  return absl::InternalError(
      fmt::format("{}: the client library gave an event of the type {} without its bytes", host_,
                  static_cast<int>(event->event_type)));
}

void LogSession::Stop() {
  // The library may be closing its own descriptor at this moment.
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace kvstore::mysql
