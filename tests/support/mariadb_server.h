#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A real MariaDB on a port of its own; stopped and removed when this goes. Its administrator is root without
/// a password.
class MariaDbServer {
 public:
  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ///
  /// arguments  further ones of mariadbd.
  explicit MariaDbServer(std::vector<std::string> arguments = {});
  ~MariaDbServer();
  MariaDbServer(const MariaDbServer&) = delete;
  MariaDbServer& operator=(const MariaDbServer&) = delete;

  uint16_t port() const { return port_; }
  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// kill -9.
  void Kill();
  /// Starts it again, on the same port with the same data.
  void Start();
  /// Makes it hang: connections stay open, and nothing answers.
  void Pause();
  void Resume();
  /// No file of its may grow beyond so many bytes, as if the disk were full; 0: as large as they like.
  void LimitFiles(uint64_t bytes);

  /// Runs SQL by the command line client, in the database `mysql`, and returns what it prints: a line a row,
  /// columns parted by tabs. Throws std::runtime_error with its message if it fails.
  std::string Run(const std::string& sql) const;

 private:
  bool Serves() const;

  const TempDir dir_;
  const uint16_t port_;
  const std::vector<std::string> arguments_;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
