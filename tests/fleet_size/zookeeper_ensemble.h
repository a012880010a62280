#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace kvstore::testing::fleet_size {

/// Three ZooKeeper servers that elect a leader, on ports of their own, with the settings of production but
/// for forceSync. They are stopped and removed when this is destroyed.
class ZooKeeperEnsemble {
 public:
  /// Starts them and returns when all serve. Throws std::runtime_error if they do not.
  ZooKeeperEnsemble();
  ~ZooKeeperEnsemble();
  ZooKeeperEnsemble(const ZooKeeperEnsemble&) = delete;
  ZooKeeperEnsemble& operator=(const ZooKeeperEnsemble&) = delete;

  /// "127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT"
  std::string servers() const;
  std::vector<uint16_t> ports() const;

  /// kill -9 of all of them.
  void Stop();
  /// Starts all of them again, with the same ports and data; returns when all serve.
  void Start();
  /// Returns how many bytes all of them have resident in memory.
  uint64_t ResidentBytes() const;

 private:
  struct Server {
    TempDir dir;
    uint16_t port = 0;
    pid_t process = -1;
  };

  void Launch(Server& server);

  std::array<Server, 3> servers_;
};

}  // namespace kvstore::testing::fleet_size
