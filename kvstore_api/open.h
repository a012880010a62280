#pragma once

#include <any>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/connect.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/mysql_options.h"
#include "kvstore_api/zookeeper_options.h"

namespace kvstore {

// The types of backends. A backend that is the only one of its type usually has the type's name.
inline constexpr char kRocksDb[] = "rocksdb";  ///< The embedded engine; configured by RocksDbOptions.
inline constexpr char kMySql[] = "mysql";      ///< Sharded MySQL servers; configured by MySqlFleetOptions.
inline constexpr char kRemote[] = "remote";    ///< Another KVStore server; configured by RemoteServer.
inline constexpr char kCached[] = "cached";    ///< Caches in front of a backend; configured by CacheOptions.

/// The embedded engine, which keeps its data in OpenOptions::data. A store has at most one such backend.
struct RocksDbOptions {
  /// Memory for blocks read from files, and for answers, shared by all datasets and allocated as it is
  /// needed. The operating system caches files too, but compressed, so a service that reads much should give
  /// this what it can spare.
  size_t cache_bytes = size_t{32} << 20;
  /// Whether the answer to a read of a row is kept there when the row is read again, until the row is
  /// written.
  bool cache_answers = true;
  /// About this much of write-ahead log is kept on disk. Beyond it, what the oldest log holds is flushed to
  /// tables. A restart after a crash reads the logs.
  size_t wal_bytes = size_t{1} << 30;
};

/// A user of MySQL servers.
struct Login {
  std::string user;
  std::string password;
};

/// Sharded MySQL servers. The maps of their shards are in ZooKeeper or in two files. A store has at most one
/// such backend; it keeps copies of the last good maps in OpenOptions::data, so that a start does not need
/// ZooKeeper.
struct MySqlFleetOptions {
  mysql::MySqlOptions options;
  ZooKeeperOptions zookeeper;     ///< No servers: the maps are the files `id_map` and `mod_map`.
  std::string root = "/kvstore";  ///< The maps are the nodes ROOT/shards/id and ROOT/shards/mod.
  std::filesystem::path id_map;   ///< The map of ID shards, as a file.
  std::filesystem::path mod_map;  ///< The map of mod shards, as a file.
  /// The administrator of the hosts, which only `kv shards` uses. Empty: operators' commands are refused.
  Login admin;
  /// The user with which slaves replicate from masters, which only `kv shards` uses. Empty: as for `admin`.
  Login replication;
};

/// Another KVStore server, used as a backend.
struct RemoteServer {
  std::string address;     ///< As for Connect (connect.h): "host:port" or "unix:/path".
  ConnectOptions options;  ///< The store sets ConnectOptions::backend itself where the catalog is shared.
};

/// Cache servers in front of a backend, which is the inner one with the name "of". They answer reads of
/// objects and of mappings; writes go through to the backend. No read returns what a write has replaced that
/// was acknowledged before the read began. Which servers are used is kept in ZooKeeper, so
/// OpenOptions::coordination must be set; docs/caches.md has the whole.
struct CacheOptions {
  /// "host:port" of memcached servers, which cache objects. None: objects are not cached.
  std::vector<std::string> memcached;
  /// "host:port" of Redis servers, which cache the first pages of mappings, and their counts.
  std::vector<std::string> redis;
  Login redis_login;  ///< Empty: Redis asks for none. Without a user: the default one.
  /// Encryption of the connections to each of the two; none: they are not encrypted.
  std::optional<ClientTls> memcached_tls = {};
  std::optional<ClientTls> redis_tls = {};
  uint32_t ttl_s = 3'600;     ///< A cached value is forgotten after this, 1..43,200.
  uint32_t timeout_ms = 250;  ///< How long a cache server may take to answer, 1..60,000.
  uint32_t connections = 16;  ///< To each cache server, 1..1,000.
  // `kv cache use` brings these two, and the servers, into force for all processes.
  uint32_t lease_ms = 10'000;  ///< A process without ZooKeeper stops to use caches after this, 100..600,000.
  /// For how long the caches of a server that has lost its memory are not read, 1..86,400, at least twice the
  /// lease. A write may take a third of what it is longer than the lease.
  uint32_t quarantine_s = 60;
};

/// One backend of a store: a place where datasets live.
///
///   {.name = "west", .type = kRemote, .options = RemoteServer{.address = "west:7400"}}
///
/// A backend may stand in front of others, as a cache does: those are its `inner` ones. It opens them itself
/// and nobody else sees them; they hold the data of the datasets that name the outer one.
struct BackendConfig {
  /// Datasets say by this name where they live (DatasetSpec::backend), so it must not change while there are
  /// any. Not empty, and unique in its list. The name of an inner backend is the field of the outer one that
  /// it stands for, such as "of".
  std::string name;
  /// kRocksDb, kMySql, kRemote or kCached. A build that leaves an engine out (KV_WITH_...) refuses the
  /// engine's type.
  std::string type;
  /// The struct that belongs to the type (see the types above); empty: that struct with its defaults.
  std::any options = {};
  /// The backends that this one stands in front of: one of kCached, whose name is "of"; none of the others.
  std::vector<BackendConfig> inner = {};
};

/// Where processes that share a catalog meet.
struct Coordination {
  ZooKeeperOptions zookeeper;
  std::string root = "/kvstore";  ///< The node below which all of the store's nodes are.
};

/// The settings of a store. How a server serves it is configured apart (ServerOptions).
struct OpenOptions {
  /// The directory of the embedded engine, and of local copies of the catalog and the shard maps.
  std::filesystem::path data;
  /// Make a store in `data` if there is none, that is, if `data` does not exist or is an empty directory.
  bool create_if_missing = true;
  /// The name of the backend for datasets whose creator names none; one of `backends`.
  std::string default_backend = kRocksDb;
  /// Where datasets can live. Without a backend of type kRocksDb, `coordination` must be set. Processes that
  /// share a catalog each give their embedded engine a name of its own; the others use that name for a
  /// backend of type kRemote, which reaches it.
  std::vector<BackendConfig> backends = {BackendConfig{.name = kRocksDb, .type = kRocksDb}};
  /// The embedded engine keeps its logs for ten minutes after it needs them, so that they can be sent to a
  /// store of backups (docs/backup.md).
  bool keep_logs = false;
  /// Set: the catalog is in ZooKeeper, shared with other processes. Not set: it is in `data`, and belongs to
  /// this process alone.
  std::optional<Coordination> coordination;
};

/// Opens a store in this process. One process at a time can have a directory open.
///
/// INVALID_ARGUMENT     the options contradict each other; the message begins with the path of the field.
/// NOT_FOUND            there is no store in `data`, and create_if_missing is not set.
/// UNAVAILABLE          another process has the directory open (the message names it), or it cannot be used;
///                      or the shard maps are neither in ZooKeeper nor in the copy in `data`.
/// FAILED_PRECONDITION  the directory is not a store's, or its format is newer than this version knows;
///                      nothing is changed. Or this build lacks the engine of a backend.
/// DATA_LOSS            a file is damaged; the message says which. Nothing is repaired or removed.
///
/// Servers, MySQL's and KVStore's, are connected to when they are needed: one that is down fails the calls
/// that need it, and not this one.
///
///   auto store = kvstore::Open({.data = "/var/lib/events"});
///   if (!store.ok()) return store.status();
///   const kvstore::CellWrite click{"click", "pin:3"};
///   auto put = (*store)->PutRow("events", "user:7", {&click, 1}, {});
absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options);

}  // namespace kvstore
