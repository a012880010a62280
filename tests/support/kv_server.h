#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// `kv serve` as a process of its own, which is stopped when this is destroyed.
class KvServer {
 public:
  /// Starts it and returns when it serves. Throws std::runtime_error if it does not.
  ///
  /// program    The path of kv.
  /// arguments  Arguments before `serve`: --data DIR or --config FILE.
  KvServer(std::string program, std::vector<std::string> arguments);
  ~KvServer();
  KvServer(const KvServer&) = delete;
  KvServer& operator=(const KvServer&) = delete;

  /// "127.0.0.1:PORT"; stays the same over restarts.
  const std::string& address() const { return address_; }
  uint16_t port() const;
  /// "127.0.0.1:PORT" of /metrics.
  std::string http() const { return "127.0.0.1:" + std::to_string(http_port_); }
  pid_t process() const { return process_; }

  /// kill -9.
  void Kill();
  /// Sends SIGTERM, waits until the server ends, and returns its exit code.
  int Stop();
  /// Starts it again.
  void Start();

  /// Resident memory in bytes.
  uint64_t ResidentBytes() const;

 private:
  const TempDir dir_;
  const std::string program_;
  const std::vector<std::string> arguments_;
  std::string address_;
  uint16_t http_port_ = 0;
  pid_t process_ = -1;
};

}  // namespace kvstore::testing
