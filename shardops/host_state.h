#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"
#include "shardops/engine.h"

/// The state of a host (host.h), its replication and its tables, as an operator sees them; and the logins.
namespace kvstore::shardops {

/// The logins by which the tool operates the hosts.
struct Access {
  /// Login and options of an administrator; any_role is implied.
  mysql::MySqlOptions admin;
  /// The login by which slaves replicate from masters.
  std::string replication_user;
  std::string replication_password;
};

/// How a host replicates from its master.
struct Following {
  Host master;
  /// The IO thread is connected to the master, so that its events arrive.
  bool receives = false;
  /// The IO thread runs but is not connected: it retries since it lost the master.
  bool reconnects = false;
  /// The SQL thread runs, so that what arrived is applied.
  bool applies = false;
  /// All that arrived is applied.
  bool caught_up = false;
  /// The GTIDs of the last transactions that arrived, as in HostState::gtid; empty if none did since it began
  /// to follow this master.
  std::string received;
  /// The connection ID of the IO thread; 0 if it does not run. When another IO thread begins, the server
  /// throws away what was received and not applied, and fetches it again.
  uint64_t thread = 0;
  std::optional<uint64_t> lag_s;  ///< None while one of the threads does not run.
  /// How long the IO thread tries to reach a master that is gone before it ends; none where that is not
  /// known, or without a limit.
  std::optional<uint64_t> gives_up_s;
  std::string error;  ///< The last error of either thread; empty if there was none.
};

/// A master whose commits wait for the slave for this long, or longer, is taken for one that never
/// acknowledges a commit without its slave.
inline constexpr uint64_t kForEverMs = 3'600'000;

/// Statements of clients that have been running on a host for kSlowStatementS or longer.
struct SlowStatements {
  uint64_t count = 0;
  // The members below are about the statement that runs longest.
  uint64_t thread = 0;  ///< KILL with this number ends it.
  std::string table;    ///< The table of a shard that it names, "db00017.events"; empty if it names none.
  uint64_t seconds = 0;
  std::string state;  ///< Its state, in the server's words: "Waiting for table metadata lock".
};
inline constexpr uint64_t kSlowStatementS = 5;

/// The state of a host, as the host reports it.
struct HostState {
  Host host;
  Engine engine = Engine::kMariaDb;
  std::string version;
  uint64_t server_id = 0;
  std::string server_uuid;  ///< MySQL's @@server_uuid; empty on MariaDB.
  bool read_only = false;
  bool binlog = false;
  bool log_slave_updates = false;
  bool gtid_strict = false;  ///< gtid_strict_mode; of MySQL, gtid_mode and enforce_gtid_consistency.
  uint64_t gtid_domain = 0;  ///< 0 on MySQL, which has none.
  /// The last transaction of each domain that it has, "0-1-17,...". While a channel copies shards to it, only
  /// transactions in its binary log count (@@gtid_binlog_pos). On MySQL the set of all transactions that it
  /// has (@@gtid_executed).
  std::string gtid;
  /// The last transaction of each server in each domain that is in its binary log (@@gtid_binlog_state). On
  /// MySQL the same as gtid.
  std::string gtid_state;
  bool semi_sync_master = false;  ///< Commits wait for a slave before they are acknowledged (the setting).
  bool semi_sync_active = false;  ///< They do so now (Rpl_semi_sync_master_status).
  /// Commits wait also while no slave is connected.
  bool semi_sync_wait_no_slave = false;
  uint64_t semi_sync_slaves = 0;  ///< How many semi-synchronous slaves the master counts.
  /// How long a commit waits for a slave before it is acknowledged without one.
  uint64_t semi_sync_timeout_ms = 0;
  /// Commits wait before other clients see what they wrote (wait point AFTER_SYNC), not only before they are
  /// acknowledged.
  bool semi_sync_hides = false;
  /// Only administrators can connect (MySQL's offline_mode).
  bool closed = false;
  /// How many commits no slave has acknowledged since the server started, or since semi-synchronous
  /// replication was switched on.
  uint64_t semi_sync_alone = 0;
  bool semi_sync_slave = false;         ///< As a slave, it acknowledges what it received (the setting).
  bool semi_sync_slave_active = false;  ///< It does so now.
  int64_t clock_ahead_ms = 0;           ///< How far its clock is ahead of this machine's.
  uint64_t max_packet = 0;
  uint64_t connections = 0;
  /// When the server was started, in seconds since 1970 by its own clock, give or take one: it tells one run
  /// of the server from another, whoever asks.
  uint64_t started_s = 0;
  std::optional<Following> following;  ///< None if it replicates from no master.
  /// The names of its channels (Channel), by which shards are copied to it from other masters.
  std::vector<std::string> channels;
};

/// The tables in each database of a shard; databases of shards that have moved away ("db00017_moved")
/// included.
using HostTables = std::map<std::string, std::set<std::string>>;

}  // namespace kvstore::shardops
