#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A real ZooKeeper server on a port of its own, which is stopped and removed when this is destroyed.
class ZooKeeperServer {
 public:
  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ZooKeeperServer();
  ~ZooKeeperServer();
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// kill -9.
  void Stop();
  /// Starts it again, on the same port with the same data.
  void Start();
  /// Returns the number of sessions.
  int Sessions() const;
  uint16_t port() const { return port_; }

 private:
  std::string Ask(const char* word) const;

  const TempDir dir_;
  const uint16_t port_;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
