#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/mysql/backend.h"
#include "kvstore_api/router.h"
#include "shardops/promote.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {

/// Two servers, the second the slave of the first, configured as docs/mysql.md has it: both come up
/// read-only, and no commit is answered before the slave has it.
class ServerPair {
 public:
  /// number     Makes the server_ids and the gtid_domain_id, different from other pairs'.
  /// arguments  Further ones of mariadbd.
  explicit ServerPair(int number, const std::vector<std::string>& arguments = {});

  MariaDbServer& a() { return a_; }
  MariaDbServer& b() { return b_; }
  Host host_a() const { return {"127.0.0.1", a_.port()}; }
  Host host_b() const { return {"127.0.0.1", b_.port()}; }
  shardops::Pair hosts() const { return {host_a(), host_b()}; }

 private:
  static std::vector<std::string> Arguments(int id, int domain, std::vector<std::string> more);

  MariaDbServer a_;
  MariaDbServer b_;
};

/// A fleet of one pair of servers with 8 ID shards and 8 mod shards. Maps are in ZooKeeper. Applications have
/// no rights but on their databases.
class PairFleet {
 public:
  static constexpr uint32_t kShards = 8;

  PairFleet();

  MariaDbServer& a() { return pair_.a(); }
  MariaDbServer& b() { return pair_.b(); }
  Host host_a() const { return pair_.host_a(); }
  Host host_b() const { return pair_.host_b(); }
  shardops::Pair hosts() const { return pair_.hosts(); }
  ZooKeeperServer& zookeeper() { return zookeeper_server_; }
  shardops::Fleet& fleet() { return fleet_; }
  /// The master by the map.
  Host Master();

  /// A store of an application, with a file for its catalog below `dir`.
  std::unique_ptr<Router> OpenStore(const std::filesystem::path& dir) const;

  /// What is below such a store, with the maps in ZooKeeper.
  std::unique_ptr<MySqlBackend> OpenBackend() const;

  /// The same with maps of the caller.
  std::unique_ptr<Router> OpenStore(const std::filesystem::path& dir, mysql::MapSources maps) const;

 private:
  mysql::MapSources Maps() const;

  ZooKeeperServer zookeeper_server_;
  ServerPair pair_{1};
  ZooKeeper zookeeper_;
  shardops::Fleet fleet_;
};

}  // namespace kvstore::testing
