#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/log_connection.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"

namespace kvstore::fleet_backup {

/// Reads the binary log of a server from a GTID position to its end, as a slave does. The server does not
/// count it as one: no commit waits for it. Externally synchronised.
class BinlogStream {
 public:
  /// Asks the server for what is after a position.
  ///
  /// login  of a user with the right REPLICATION SLAVE.
  /// after  "1-1-17,2-3-4"
  ///
  /// UNAVAILABLE if the server cannot be reached.
  static absl::StatusOr<std::unique_ptr<BinlogStream>> Open(const Host& host,
                                                            const mysql::MySqlOptions& login,
                                                            const std::string& after);
  BinlogStream(const BinlogStream&) = delete;
  BinlogStream& operator=(const BinlogStream&) = delete;

  /// Returns the bytes of the next event (FirstEvent, binlog.h), valid until the next call; empty at the end
  /// of the log as it is then. OUT_OF_RANGE, with the server's words, if the server knows that it does not
  /// have what is after the position. It may not know: a server whose logs begin later, since it was made
  /// from a copy, gives what it has, so the caller must compare the first transaction with the position.
  absl::StatusOr<std::string_view> Next();

 private:
  BinlogStream(const Host& host, std::unique_ptr<mysql::LogConnection> connection);

  const std::string host_;
  const std::unique_ptr<mysql::LogConnection> connection_;
};

}  // namespace kvstore::fleet_backup
