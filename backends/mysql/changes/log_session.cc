#include "backends/mysql/changes/log_session.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace kvstore::mysql {
namespace {

/// ER_ACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR
constexpr unsigned kAccessDenied = 1045;
constexpr unsigned kRightMissing = 1227;
/// How long a server may be silent that sends heartbeats each second.
constexpr unsigned kSilenceS = 15;

absl::Status LogError(const std::string& host, const LogConnection::Error& error) {
  if (error.number == kAccessDenied || error.number == kRightMissing) {
    return absl::FailedPreconditionError(fmt::format("{}: its binary log may not be read: {} (error {}); {}",
                                                     host, error.message, error.number, kRightsOfChanges));
  }
  if (error.number == LogConnection::kCannotServe) {
    return absl::OutOfRangeError(fmt::format("{}: {} (error {})", host, error.message, error.number));
  }
  return absl::UnavailableError(
      fmt::format("{}: its binary log cannot be read: {} (error {})", host, error.message, error.number));
}

}  // namespace

LogSession::LogSession(const Host& host, std::unique_ptr<LogConnection> connection, bool checksums)
    : host_(host.ToString()),
      connection_(std::move(connection)),
      checksums_(checksums),
      socket_(::dup(connection_->socket())) {}

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
  auto connection = std::make_unique<LogConnection>();
  std::vector<std::string> statements = {"SET @master_heartbeat_period = 1000000000"};
  // In the strict mode the server checks that it has the very transactions of the place, so that nobody goes
  // on after some that were lost.
  if (after != nullptr) {
    statements.push_back("SET @slave_connect_state = '" + after->ToString() + "'");
    statements.emplace_back("SET @slave_gtid_strict_mode = 1");
    statements.emplace_back("SET @slave_gtid_ignore_duplicates = 0");
  }
  if (!connection->Connect(host, login, kSilenceS, statements)) {
    return LogError(host.ToString(), connection->error());
  }
  const auto checksums = connection->AskOne("SELECT @master_binlog_checksum");
  if (!checksums.ok() || !connection->Begin(at_end, file)) {
    return LogError(host.ToString(), connection->error());
  }
  const bool has_checksums = !checksums->empty() && *checksums != "NONE";
  return std::unique_ptr<LogSession>(new LogSession(host, std::move(connection), has_checksums));
}

absl::StatusOr<std::string_view> LogSession::Next() {
  const LogConnection::Event event = connection_->Next();
  if (event.is_end) {
    const LogConnection::Error error = connection_->error();
    if (error.number == 0) return std::string_view();
    return LogError(host_, error);
  }
  if (!event.bytes.empty()) return event.bytes;
  return absl::InternalError(fmt::format(
      "{}: the client library gave an event of the type {} without its bytes", host_, event.type));
}

void LogSession::Stop() {
  // The library may be closing its own descriptor at this moment.
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace kvstore::mysql
