#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A memcached or Redis server of the test's own, on a free port of the loopback interface.
class CacheServer {
 public:
  enum class Kind : uint8_t { kMemcached, kRedis };

  /// The PEM files of a server that speaks TLS only.
  struct Tls {
    std::string cert;
    std::string key;
    std::string client_ca;  ///< Clients need a certificate of this authority; empty: they need none.
  };

  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ///
  /// arguments  more of them.
  explicit CacheServer(Kind kind, std::vector<std::string> arguments = {}, std::optional<Tls> tls = {});
  ~CacheServer();
  CacheServer(const CacheServer&) = delete;
  CacheServer& operator=(const CacheServer&) = delete;

  /// "127.0.0.1:PORT"
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

  /// kill -9: it loses its memory.
  void Stop();
  /// Starts it again on the same port. Nothing if it runs.
  void Start();
  bool running() const { return process_ > 0; }
  /// SIGSTOP and SIGCONT: it hangs, and keeps its memory.
  void Pause();
  void Continue();

 private:
  std::vector<std::string> Command() const;
  /// Whether it answers, or with TLS takes connections.
  bool Serves() const;

  const Kind kind_;
  const std::vector<std::string> arguments_;
  const std::optional<Tls> tls_;
  const TempDir dir_;
  const uint16_t port_;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
