#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shardmap/weights.h"

namespace kvstore::mysql {

/// Encryption of connections. The connector ignores what it cannot do, so it is checked after connecting.
struct TlsOptions {
  bool required = false;  ///< Refuse a server that does not encrypt.
  std::string ca;    ///< File with the certificates that servers' are checked against; empty: not checked.
  std::string cert;  ///< Our own certificate and its key; empty: none.
  std::string key;
};

/// The connections to one host.
struct PoolOptions {
  size_t max_connections = 16;      ///< 1..1000; a call beyond them waits.
  size_t min_connections = 2;       ///< So many stay open when there is nothing to do.
  uint32_t wait_ms = 2'000;         ///< How long a call waits for a connection before RESOURCE_EXHAUSTED.
  uint32_t lifetime_s = 3'600;      ///< A connection is replaced after this, give or take a tenth.
  uint32_t idle_s = 60;             ///< One that is not used for this long is closed, down to the minimum.
  uint32_t check_after_ms = 1'000;  ///< One that was idle for this long is tried before it is used.
  uint32_t connect_timeout_s = 3;   ///< Also for the greeting and the login.
  uint32_t read_timeout_s = 15;     ///< Of a statement; a host that hangs costs this once or twice.
  uint32_t write_timeout_s = 15;    ///< Of sending.
  uint32_t lock_wait_s = 5;  ///< How long a statement waits for another's row lock. Below the read timeout.
  size_t statements =
      256;  ///< Prepared statements a connection keeps; the server has a limit for all of them.
};

/// When a host that fails is left alone.
struct BreakerOptions {
  uint32_t failures = 2;          ///< So many connections fail in a row, and it opens.
  uint32_t min_pause_ms = 200;    ///< Then nobody tries for this long, ...
  uint32_t max_pause_ms = 5'000;  ///< ... twice as long after each further failure, up to this.
};

struct MySqlOptions {
  std::string user;
  std::string password;
  TlsOptions tls;
  PoolOptions pool;
  BreakerOptions breaker;
  /// Connect to hosts that are read-only too: for operators. Others wait until the shard map names another.
  bool any_role = false;
  ShardWeights weights;  ///< As long as MapSources::weights has none.
  /// Cells that a purge looks at a second, on each host; 0: as fast as it can.
  uint64_t purge_cells_per_s = 50'000;
};

}  // namespace kvstore::mysql
