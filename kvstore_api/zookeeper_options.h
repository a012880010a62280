#pragma once

#include <cstdint>
#include <string>

namespace kvstore {

/// How to connect to ZooKeeper.
struct ZooKeeperOptions {
  std::string servers;  ///< "host:port,host:port"
  /// "user:password" of the digest scheme; empty: none. With a user, only that user can write nodes that are
  /// created.
  std::string auth;
  uint32_t session_timeout_ms = 10'000;  ///< ZooKeeper ends a session that it has not heard of for this long.
  uint32_t call_timeout_ms = 5'000;      ///< How long a call waits for a connection and an answer.
};

}  // namespace kvstore
