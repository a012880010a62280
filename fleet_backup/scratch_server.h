#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/connection.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"
#include "shardops/program.h"

namespace kvstore::fleet_backup {

/// A MariaDB server on the data of a restored backup, for this process and its user alone. It listens on the
/// loopback interface, logs nothing and replicates from nobody. In a folder:
///
///   mysql/       the server's data
///   my.cnf       by which it starts again (mariadbd --defaults-file=my.cnf), and clients log in
///   server.log   its log of errors
///
/// It is killed with this process. Externally synchronised.
class ScratchServer {
 public:
  /// The user that it is made for, with all rights and a password of its own, from this machine only.
  static constexpr char kUser[] = "kv_restore";

  /// Writes my.cnf, starts the server, and returns when it serves.
  ///
  /// folder  INVALID_ARGUMENT if its path is too long for the name of a socket.
  ///
  /// FAILED_PRECONDITION if mariadbd is not installed; INTERNAL, with the end of its log, if it does not
  /// start.
  static absl::StatusOr<std::unique_ptr<ScratchServer>> Start(const std::filesystem::path& folder);

  Host host() const { return {"127.0.0.1", port_}; }
  const std::string& password() const { return password_; }
  std::filesystem::path options_file() const { return folder_ / "my.cnf"; }

  /// Opens a connection. A statement may run for a day.
  absl::StatusOr<std::unique_ptr<mysql::Connection>> Connect() const;
  /// Runs statements that have no result.
  absl::Status Run(const std::vector<std::string>& statements) const;
  /// Returns the first column of the rows of a statement.
  absl::StatusOr<std::vector<std::string>> Ask(std::string_view statement) const;

  /// Removes the user that it is made for. Only Stop can be called then.
  absl::Status DropUser() const;
  /// Ends the server in order, so that its files are whole.
  absl::Status Stop();

 private:
  ScratchServer(std::filesystem::path folder, uint16_t port, std::string password)
      : folder_(std::move(folder)), port_(port), password_(std::move(password)) {}
  absl::Status WriteOptions() const;
  absl::Status Launch();
  /// Adds the end of the server's log to an error.
  absl::Status WithLog(const absl::Status& status) const;

  const std::filesystem::path folder_;
  const uint16_t port_;
  const std::string password_;
  std::unique_ptr<shardops::Program> program_;
};

}  // namespace kvstore::fleet_backup
