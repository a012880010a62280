#include "fleet_backup/binlog_stream.h"

#include <fmt/format.h>

#include <utility>

#include "fleet_backup/binlog.h"
#include "shardops/quoted.h"

namespace kvstore::fleet_backup {

using mysql::LogConnection;

BinlogStream::BinlogStream(const Host& host, std::unique_ptr<LogConnection> connection)
    : host_(host.ToString()), connection_(std::move(connection)) {}

absl::StatusOr<std::unique_ptr<BinlogStream>> BinlogStream::Open(const Host& host,
                                                                 const mysql::MySqlOptions& login,
                                                                 const std::string& after) {
  auto connection = std::make_unique<LogConnection>();
  // In the strict mode, a server whose log begins after the position, because it was made from a copy, would
  // refuse even the very next transaction; the reader compares the sequences instead.
  const std::vector<std::string> statements = {"SET @slave_connect_state = " + shardops::Quoted(after),
                                               "SET @slave_gtid_strict_mode = 0",
                                               "SET @slave_gtid_ignore_duplicates = 0"};
  if (!connection->Connect(host, login, /*silence_s=*/0, statements) ||
      !connection->Begin(LogConnection::AtEnd::kEnds, "")) {
    const LogConnection::Error error = connection->error();
    return absl::UnavailableError(fmt::format("{}: its binary log cannot be read: {} (error {})",
                                              host.ToString(), error.message, error.number));
  }
  return std::unique_ptr<BinlogStream>(new BinlogStream(host, std::move(connection)));
}

absl::StatusOr<std::string_view> BinlogStream::Next() {
  const LogConnection::Event event = connection_->Next();
  if (event.is_end) {
    const LogConnection::Error error = connection_->error();
    if (error.number == 0) return std::string_view();
    std::string message = fmt::format("{}: {}", host_, error.message);
    if (error.number == LogConnection::kCannotServe) return absl::OutOfRangeError(message);
    return absl::UnavailableError(fmt::format("{} (error {})", message, error.number));
  }
  const auto read = FirstEvent(event.bytes);
  if (read && read->bytes.size() == event.bytes.size() && read->type == event.type) return event.bytes;
  return absl::InternalError(fmt::format(
      "{}: the client library gave an event of the type {} without its bytes", host_, event.type));
}

}  // namespace kvstore::fleet_backup
