#include "fleet_backup/binlog_stream.h"

#include <fmt/format.h>
#include <mysql.h>
// It uses what mysql.h declares.
#include <mariadb_rpl.h>

#include <cstdint>
#include <random>
#include <utility>

#include "fleet_backup/binlog.h"
#include "shardops/quoted.h"

namespace kvstore::fleet_backup {
namespace {

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: the server cannot serve what is behind the position.
constexpr unsigned kCannotServe = 1236;
/// The log begins here in a file; a server that is given GTIDs ignores it.
constexpr unsigned long kFirstPosition = 4;

/// Returns a server ID that no slave has: a server ends the connection of a slave when another one with its
/// ID connects, after which commits may wait for that slave without end. (0 would say that it is no slave,
/// but the library sends 1 in its place.)
uint32_t UnusedServerId() { return uint32_t{1} << 31 | std::random_device{}() >> 1; }

void SetOptions(MYSQL* connection, const mysql::MySqlOptions& login) {
  const unsigned connect_s = login.pool.connect_timeout_s;
  const unsigned read_s = login.pool.read_timeout_s;
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

}  // namespace

struct BinlogStream::Session {
  Session() : connection(mysql_init(nullptr)) {}
  ~Session() {
    if (event != nullptr) mariadb_free_rpl_event(event);
    if (log != nullptr) mariadb_rpl_close(log);
    mysql_close(connection);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool Run(const std::string& statement) const {
    return mysql_real_query(connection, statement.data(), statement.size()) == 0;
  }

  MYSQL* connection;
  MARIADB_RPL* log = nullptr;
  MARIADB_RPL_EVENT* event = nullptr;
};

BinlogStream::BinlogStream(const Host& host, std::unique_ptr<Session> session)
    : host_(host.ToString()), session_(std::move(session)) {}
BinlogStream::~BinlogStream() = default;

absl::StatusOr<std::unique_ptr<BinlogStream>> BinlogStream::Open(const Host& host,
                                                                 const mysql::MySqlOptions& login,
                                                                 const std::string& after) {
  auto session = std::make_unique<Session>();
  MYSQL* const connection = session->connection;
  SetOptions(connection, login);
  const bool is_connected =
      mysql_real_connect(connection, host.name.c_str(), login.user.c_str(), login.password.c_str(), nullptr,
                         host.port, nullptr, 0) != nullptr;
  // As a slave does: it understands GTIDs and the checksums of events. In the strict mode, a server whose log
  // begins behind the position, because it was made from a copy, would refuse even the very next transaction;
  // who reads compares the sequences instead.
  const bool is_ready = is_connected && session->Run("SET @mariadb_slave_capability = 4") &&
                        session->Run("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum") &&
                        session->Run("SET @slave_connect_state = " + shardops::Quoted(after)) &&
                        session->Run("SET @slave_gtid_strict_mode = 0") &&
                        session->Run("SET @slave_gtid_ignore_duplicates = 0");
  if (is_ready) session->log = mariadb_rpl_init(connection);
  if (session->log != nullptr) {
    mariadb_rpl_optionsv(session->log, MARIADB_RPL_START, kFirstPosition);
    mariadb_rpl_optionsv(session->log, MARIADB_RPL_SERVER_ID, UnusedServerId());
    mariadb_rpl_optionsv(session->log, MARIADB_RPL_FLAGS, unsigned{MARIADB_RPL_BINLOG_DUMP_NON_BLOCK});
    mariadb_rpl_optionsv(session->log, MARIADB_RPL_VERIFY_CHECKSUM, 1U);
  }
  if (session->log == nullptr || mariadb_rpl_open(session->log) != 0) {
    return absl::UnavailableError(fmt::format("{}: its binary log cannot be read: {} (error {})",
                                              host.ToString(), mysql_error(connection),
                                              mysql_errno(connection)));
  }
  return std::unique_ptr<BinlogStream>(new BinlogStream(host, std::move(session)));
}

absl::StatusOr<std::string_view> BinlogStream::Next() {
  MARIADB_RPL_EVENT* const event = mariadb_rpl_fetch(session_->log, std::exchange(session_->event, nullptr));
  session_->event = event;
  if (event == nullptr) {
    const unsigned error = mysql_errno(session_->connection);
    const unsigned log_error = mariadb_rpl_errno(session_->log);
    if (error == 0 && log_error == 0) return std::string_view();
    std::string message = fmt::format(
        "{}: {}", host_, error != 0 ? mysql_error(session_->connection) : mariadb_rpl_error(session_->log));
    if (error == kCannotServe) return absl::OutOfRangeError(message);
    return absl::UnavailableError(fmt::format("{} (error {})", message, error != 0 ? error : log_error));
  }
  // The event is the end of what was received.
  const size_t size = event->event_length;
  if (event->raw_data != nullptr && size <= event->raw_data_size) {
    const std::string_view bytes(reinterpret_cast<const char*>(event->raw_data) + event->raw_data_size - size,
                                 size);
    const auto read = FirstEvent(bytes);
    if (read && read->bytes.size() == size && read->type == event->event_type) return bytes;
  }
  return absl::InternalError(
      fmt::format("{}: the client library gave an event of the type {} without its bytes", host_,
                  static_cast<int>(event->event_type)));
}

}  // namespace kvstore::fleet_backup
