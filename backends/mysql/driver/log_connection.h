#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_range.h"

namespace kvstore::mysql {

/// A connection that reads the binary log of a MariaDB server as a slave does, by libmariadb's mariadb_rpl.
/// The server does not count it as one: no commit waits for it. Externally synchronised.
class LogConnection {
 public:
  /// Says what happens at the end of the log.
  enum class AtEnd : uint8_t {
    kEnds,  ///< Next returns nothing.
    kWaits  ///< Next waits.
  };
  /// The error of a call that failed, with its number in the server or in the client library.
  struct Error {
    unsigned number = 0;  ///< 0: none.
    std::string message;
  };
  /// ER_MASTER_FATAL_ERROR_READING_BINLOG: the server cannot serve what is after the place.
  static constexpr unsigned kCannotServe = 1236;

  struct Event {
    std::string_view bytes;  ///< Valid until the next call; empty at the end, and if the library lacks them.
    uint8_t type = 0;
    bool is_end = false;
  };

  LogConnection();
  ~LogConnection();
  LogConnection(const LogConnection&) = delete;
  LogConnection& operator=(const LogConnection&) = delete;

  /// Connects, says that GTIDs and the checksums of events are understood, and runs the statements. Returns
  /// whether all succeeded; if not, error() says why.
  ///
  /// silence_s  How long the server may be silent, at least (seconds); login.pool.read_timeout_s if that is
  /// more.
  bool Connect(const Host& host, const MySqlOptions& login, unsigned silence_s,
               const std::vector<std::string>& statements);
  /// Returns the value that a query has in its first row and column, "" for NULL or no row. UNAVAILABLE if it
  /// fails.
  absl::StatusOr<std::string> AskOne(const std::string& query) const;
  /// Begins to read, from `@slave_connect_state` if that was set, else from the beginning of a file. Once,
  /// after Connect. Returns as Connect does.
  ///
  /// file  "": the first one.
  bool Begin(AtEnd at_end, const std::string& file);
  /// Returns the next event. If it fails, error() is not 0.
  Event Next();
  /// Returns the error of the last call that failed.
  Error error() const;
  /// The descriptor of the connection's socket, which it owns.
  int socket() const;

 private:
  struct Handles;
  const std::unique_ptr<Handles> handles_;
};

}  // namespace kvstore::mysql
