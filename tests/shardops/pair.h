#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend_api/consumer_places.h"
#include "backends/mysql/backend.h"
#include "router/router.h"
#include "shardops/promote.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {

/// Two servers, of which the second is the slave of the first, configured as docs/mysql.md has it: both start
/// read-only, and no commit is acknowledged before the slave has it.
class ServerPair {
 public:
  /// number     Determines the server_ids and the gtid_domain_id; must differ between pairs.
  /// arguments  Further arguments of mariadbd.
  explicit ServerPair(int number, const std::vector<std::string>& arguments = {});

  MariaDbServer& a() { return a_; }
  MariaDbServer& b() { return b_; }
  Host host_a() const { return {"127.0.0.1", a_.port()}; }
  Host host_b() const { return {"127.0.0.1", b_.port()}; }
  shardops::Pair hosts() const { return {host_a(), host_b()}; }

  /// Returns the arguments of a server with this server_id and gtid_domain_id, and further ones.
  static std::vector<std::string> Arguments(int id, int domain, std::vector<std::string> more);

 private:
  MariaDbServer a_;
  MariaDbServer b_;
};

/// Has a slave get nothing more of its master, which acknowledges commits without it from now on.
void CutOffSlave(MariaDbServer& master, MariaDbServer& slave);

/// A fleet of one pair of servers with 8 ID shards and 8 mod shards, and its maps in ZooKeeper. Applications
/// log in as a user who has rights on the shards' databases only.
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
  shardops::FleetOperator& fleet() { return fleet_; }
  /// Returns the master by the map.
  Host Master();

  /// Writes the configuration of an operator's kv for this fleet, with a store in "data" beside the file.
  void WriteConfig(const std::filesystem::path& file) const;

  /// Has stores that are opened from now on create datasets whose tables are made on first use.
  void MakeTablesOnFirstUse() { tables_on_first_use_ = true; }
  /// Opens a store of an application, whose catalog is a file below `dir`.
  std::unique_ptr<Router> OpenStore(const std::filesystem::path& dir) const;

  /// Opens the backend of such a store, with the maps in ZooKeeper.
  std::unique_ptr<MySqlBackend> OpenBackend() const;

  /// Opens a store with maps from the caller's sources.
  std::unique_ptr<Router> OpenStore(const std::filesystem::path& dir, mysql::MapSources maps) const;

 private:
  mysql::MapSources Maps() const;
  std::unique_ptr<ConsumerPlaces> Consumers() const;
  /// Opens the backend with these maps.
  std::unique_ptr<MySqlBackend> BackendOf(mysql::MapSources maps) const;

  ZooKeeperServer zookeeper_server_;
  ServerPair pair_{1};
  bool tables_on_first_use_ = false;
  ZooKeeper zookeeper_;
  shardops::FleetOperator fleet_;
};

}  // namespace kvstore::testing
