#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/options.h"
#include "client/options.h"
#include "coordination/zookeeper.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/router.h"

namespace kvstore {

/// The usual names of backends, as datasets have them.
inline constexpr char kRocksDb[] = "rocksdb";
inline constexpr char kMySql[] = "mysql";

/// A user of MySQL servers.
struct Login {
  std::string user;
  std::string password;
};

/// Sharded MySQL servers, and where the maps of their shards are: in ZooKeeper, or in two files.
struct MySqlFleet {
  mysql::MySqlOptions options;
  ZooKeeperOptions zookeeper;     ///< No servers: the maps are files.
  std::string root = "/kvstore";  ///< The maps are ROOT/shards/id and ROOT/shards/mod.
  std::filesystem::path id_map;
  std::filesystem::path mod_map;
  /// For `kv shards`: who operates the hosts, and with which user slaves follow masters. Empty users: nobody.
  Login admin;
  Login replication;
};

/// Another server, as a backend.
struct RemoteServer {
  std::string address;  ///< "host:port" or "unix:/path".
  ConnectOptions options;
};

/// Where processes that share a catalog meet.
struct Coordination {
  ZooKeeperOptions zookeeper;
  std::string root = "/kvstore";  ///< All nodes are below.
};

struct OpenOptions {
  /// The directory of the embedded store, and of copies of the catalog and the shard maps.
  std::filesystem::path data;
  /// Make a store in `data` if there is none (it does not exist, or is an empty directory).
  bool create_if_missing = true;
  /// Memory for blocks read from files, all datasets together; taken as it is needed. The operating system
  /// keeps files in its memory too, compressed; a service that reads much gives this what it can spare.
  size_t cache_bytes = size_t{32} << 20;
  /// About this much of logs of writes is kept on disk: beyond it what the oldest holds is written to tables.
  /// A restart reads them.
  size_t wal_bytes = size_t{1} << 30;
  /// Where datasets go whose creator names no backend.
  std::string default_backend = kRocksDb;
  /// The name of the embedded backend; empty: there is none. Where several processes share a catalog, each
  /// has a name of its own for it, which the others give to a remote backend.
  std::string rocksdb = kRocksDb;
  /// Other servers, by the names of their backends here.
  std::map<std::string, RemoteServer> remotes;
  /// The catalog is in ZooKeeper, shared with other processes; none: it is in `data`, of this process alone.
  std::optional<Coordination> coordination;
  std::string mysql_name = kMySql;
  /// The servers of the backend of that name; none: there is no such backend. Their last good shard maps are
  /// kept in `data`, so that a start does not need ZooKeeper.
  std::optional<MySqlFleet> mysql;
};

/// Opens a store in this process. One process at a time can have a directory open.
///
/// NOT_FOUND            there is none and create_if_missing is not set.
/// UNAVAILABLE          another process has it open (the message names it), or the directory cannot be used.
/// FAILED_PRECONDITION  the directory is not ours, or of a newer format; nothing is changed.
/// DATA_LOSS            a file is damaged; the message says which. Nothing is repaired or removed.
///
///   auto store = kvstore::Open({.data = "/var/lib/events"});
///   if (!store.ok()) return store.status();
///   (*store)->PutRow("events", "user:7", {{{"click", "pin:3"}}}, {});
///
/// UNAVAILABLE also if neither ZooKeeper nor the cache in `data` has the shard maps. Servers are connected to
/// when they are needed: one that is down fails calls for its shards.
///
/// This is the one place that knows every backend: a new one is a line in open.cc.
absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options);

/// The same, for a server.
absl::StatusOr<std::unique_ptr<Router>> OpenRouter(const OpenOptions& options);

/// The datasets of the catalog that are on the MySQL servers. Does not open the store.
absl::StatusOr<std::vector<DatasetSpec>> MySqlDatasets(const OpenOptions& options);

/// The same to be called again and again, by one thread at a time: as the catalog is at each call.
std::function<absl::StatusOr<std::vector<DatasetSpec>>()> MySqlDatasetsReader(const OpenOptions& options);

/// What kv shards init has not made: why, and how many shards or tables.
using LeftAlone = std::map<std::string, uint64_t>;

/// Makes the databases of all open shards, and the tables of all datasets of `options.data` that are on them;
/// what is there stays, and what migrates or moves is left alone. Does not open the store, which may be open
/// elsewhere. Where the maps are in ZooKeeper it waits for up to a minute for operations that exclude it:
/// shards that are opened, datasets that are dropped; and FAILED_PRECONDITION, nothing made, if a shard that
/// its master lacks is at another host that operators know: the map is wrong.
///
/// progress    shards done, and in all. May be null.
/// left_alone  may be null.
absl::Status InitShards(const OpenOptions& options, const Progress& progress, LeftAlone* left_alone);

}  // namespace kvstore
