#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvstore {

/// New objects whose creator names no shard go to shards first..last in proportion to `weight`; 0: none go
/// there.
struct ShardWeight {
  static constexpr uint32_t kMax = 1'000'000;
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t weight = 1;
  friend bool operator==(const ShardWeight&, const ShardWeight&) = default;
};

/// The weights of all shards. If several entries name a shard, the first one counts; a shard that none names
/// has weight 1.
using ShardWeights = std::vector<ShardWeight>;

}  // namespace kvstore

namespace kvstore::mysql {

/// Encryption of connections. The connector silently ignores options that it does not support, so every
/// connection is checked after it was made.
struct TlsOptions {
  bool required = false;  ///< Refuse a server that does not encrypt.
  std::string ca;    ///< File with the certificates of trusted authorities; empty: servers' are not checked.
  std::string cert;  ///< Files with the client's certificate and its key; empty: none.
  std::string key;
};

/// The connections to one host, and to all hosts together.
struct PoolOptions {
  size_t max_connections = 16;  ///< 1..1000 to a host; further calls wait for a connection.
  /// This many stay open to a host when they are idle. All processes together keep as many on each master, so
  /// that only a fleet with few clients can afford more than none.
  size_t min_connections = 0;
  /// 1..100,000 to all hosts together. A call that needs one more closes an idle connection to another host
  /// first, whatever min_connections says, or waits as it does for a connection of its own host.
  size_t max_total = 1'000;
  uint32_t wait_ms = 2'000;     ///< How long a call waits for a connection before RESOURCE_EXHAUSTED.
  uint32_t lifetime_s = 3'600;  ///< A connection is replaced after this, give or take a tenth.
  uint32_t idle_s = 60;         ///< A connection that is idle for this long is closed, down to the minimum.
  uint32_t check_after_ms = 1'000;  ///< One that was idle for this long is tested before it is used.
  uint32_t connect_timeout_s = 3;   ///< Includes the greeting and the login.
  uint32_t read_timeout_s = 15;   ///< For a statement's result; a call to a hanging host waits once or twice.
  uint32_t write_timeout_s = 15;  ///< For sending a statement.
  uint32_t lock_wait_s = 5;  ///< How long a statement waits for another's row lock. Below the read timeout.
  /// How many prepared statements a connection keeps. The server has a limit for those of all connections.
  size_t statements = 256;
};

/// The circuit breaker in front of a host.
struct BreakerOptions {
  uint32_t failures = 2;          ///< It opens after this many failed connections in a row.
  uint32_t min_pause_ms = 200;    ///< The pause until the next attempt to connect, ...
  uint32_t max_pause_ms = 5'000;  ///< ... which doubles after each further failure, up to this.
};

struct MySqlOptions {
  std::string user;
  std::string password;
  TlsOptions tls;
  PoolOptions pool;
  BreakerOptions breaker;
  /// Use hosts that are read-only, too; for operators. Otherwise calls wait until the shard map names another
  /// host.
  bool any_role = false;
  ShardWeights weights;  ///< Used as long as MapSources::weights has none.
  /// The tables of a dataset that is created are made on each shard when a call needs them there first, and
  /// not on all shards at once. For fleets of many shards, whose empty tables take gigabytes for each
  /// dataset. It counts for datasets that are created from now on, and needs shard maps in ZooKeeper.
  bool tables_on_first_use = false;
  /// How many cells a purge examines per second on each host; 0: no limit.
  uint64_t purge_cells_per_s = 50'000;
};

}  // namespace kvstore::mysql
