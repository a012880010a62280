#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "backends/mysql/backend.h"
#include "kvstore_api/router.h"
#include "shardops/promote.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {

/// A fleet of one pair of servers with 8 ID shards and 8 mod shards, configured as docs/mysql.md has it: both
/// come up read-only, and no commit is answered before the slave has it. Maps are in ZooKeeper. Applications
/// have no rights but on their databases.
class PairFleet {
 public:
  static constexpr uint32_t kShards = 8;

  PairFleet();

  MariaDbServer& a() { return a_; }
  MariaDbServer& b() { return b_; }
  Host host_a() const { return {"127.0.0.1", a_.port()}; }
  Host host_b() const { return {"127.0.0.1", b_.port()}; }
  ZooKeeperServer& zookeeper() { return zookeeper_server_; }
  shardops::Fleet& fleet() { return fleet_; }
  /// The master by the map.
  Host Master();

  /// A store of an application, with a file for its catalog below `dir`.
  std::unique_ptr<Router> OpenStore(const std::filesystem::path& dir) const;

 private:
  static std::vector<std::string> Arguments(int id);

  ZooKeeperServer zookeeper_server_;
  MariaDbServer a_{Arguments(1)};
  MariaDbServer b_{Arguments(2)};
  ZooKeeper zookeeper_;
  shardops::Fleet fleet_;
};

}  // namespace kvstore::testing
