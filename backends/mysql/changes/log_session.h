#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/mysql/changes/log_position.h"
#include "backends/mysql/driver/log_connection.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_range.h"

namespace kvstore::mysql {

/// Tells which rights an account needs to read a log; for messages.
inline constexpr std::string_view kRightsOfChanges =
    "the account in this program's configuration needs the rights REPLICATION SLAVE and BINLOG MONITOR";

/// A connection that reads the binary log of a MariaDB server, as a slave does. The server does not count it
/// as one: no commit waits for it. Externally synchronised, except for Stop.
class LogSession {
 public:
  /// Says what happens at the end of the log: Next returns nothing, or waits, and heartbeats come about once
  /// a second.
  using AtEnd = LogConnection::AtEnd;

  /// Begins after a place.
  ///
  /// UNAVAILABLE          the server cannot be reached.
  /// FAILED_PRECONDITION  the account lacks a right.
  static absl::StatusOr<std::unique_ptr<LogSession>> Open(const Host& host, const MySqlOptions& login,
                                                          const LogVector& after, AtEnd at_end);
  /// Begins at the beginning of a file, to see what is before it.
  static absl::StatusOr<std::unique_ptr<LogSession>> OpenFile(const Host& host, const MySqlOptions& login,
                                                              const std::string& file);
  ~LogSession();
  LogSession(const LogSession&) = delete;
  LogSession& operator=(const LogSession&) = delete;

  /// Returns the bytes of the next event (DecodeEvent), valid until the next call; empty at the end. No more
  /// can be read from a session that was at the end, or has failed.
  ///
  /// OUT_OF_RANGE  the server does not have what is after the place, or has another log.
  absl::StatusOr<std::string_view> Next();

  /// Whether events that come before the first one that says the log's format have checksums.
  bool checksums() const { return checksums_; }

  /// Has a Next that waits, in another thread, return an error.
  void Stop();

 private:
  LogSession(const Host& host, std::unique_ptr<LogConnection> connection, bool checksums);
  static absl::StatusOr<std::unique_ptr<LogSession>> Begin(const Host& host, const MySqlOptions& login,
                                                           const LogVector* after, const std::string& file,
                                                           AtEnd at_end);

  const std::string host_;
  const std::unique_ptr<LogConnection> connection_;
  const bool checksums_;
  const int socket_;  // a descriptor of its own of the connection, for Stop
};

}  // namespace kvstore::mysql
