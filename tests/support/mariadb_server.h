#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Whether the servers of tests are MySQL servers in place of MariaDB's. The environment variable
/// KV_TEST_MYSQL names the folder with MySQL, which demo/mysql-root makes; ./dev test --mysql9 sets it.
bool OnMySql();

/// Skips a test whose subject exists in MariaDB only; `why` says what that is.
#define KV_SKIP_ON_MYSQL(why) \
  if (::kvstore::testing::OnMySql()) GTEST_SKIP() << "MariaDB only: " << (why)

/// A real MariaDB server, or a MySQL server (OnMySql), on a port of its own, which is stopped and removed
/// when this is destroyed. Its administrator is root, without a password.
class MariaDbServer {
 public:
  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ///
  /// arguments  Further arguments, in the words of MariaDB (mysql_words.h).
  /// mysql      Whether it is a MySQL server. If it is, KV_TEST_MYSQL must be set.
  explicit MariaDbServer(std::vector<std::string> arguments = {}, bool mysql = OnMySql());
  ~MariaDbServer();
  MariaDbServer(const MariaDbServer&) = delete;
  MariaDbServer& operator=(const MariaDbServer&) = delete;

  uint16_t port() const { return port_; }
  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Where its files are.
  std::filesystem::path data() const { return dir_ / "data"; }

  /// kill -9. Called by one thread, as all that follow.
  void Kill();
  /// Starts it again, on the same port with the same data.
  void Start();
  /// Makes it hang (SIGSTOP): connections stay open, and nothing answers.
  void Pause();
  void Resume();
  /// Prevents its files from growing beyond so many bytes, as if the disk were full; 0 removes the limit.
  void LimitFiles(uint64_t bytes);

  /// Runs SQL, in the words of MariaDB where it is about replication (mysql_words.h), by the command line
  /// client, in the database `mysql`, and returns what that prints: a line for each row, with tabs between
  /// columns. Throws std::runtime_error with the client's message if it fails.
  std::string Run(const std::string& sql) const;

 private:
  bool Serves() const;
  /// Starts the server's process.
  void Launch();
  /// Starts the process again whenever it has ended to be restarted, as a service manager does. A MySQL
  /// server does that after it has copied another one.
  void Supervise();

  const bool mysql_;
  const TempDir dir_;
  const uint16_t port_;
  const std::vector<std::string> arguments_;
  std::atomic<pid_t> process_{-1};  // changed by the supervisor alone while that runs
  std::thread supervisor_;
  std::atomic<bool> killed_{false};
};

}  // namespace kvstore::testing
