#pragma once

#include <cppconn/exception.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"
#include "shardops/quoted.h"

/// A host as its operator sees it: its state, its replication, and the few changes that make a slave a
/// master. Replication is MariaDB's own, by GTID.
namespace kvstore::shardops {

/// The logins by which the tool operates the hosts.
struct Access {
  /// Login and options of an administrator; any_role is implied.
  mysql::MySqlOptions admin;
  /// The login by which slaves replicate from masters.
  std::string replication_user;
  std::string replication_password;
};

/// Returns the same logins with a read timeout of a day, for statements that may run for long.
Access WithLongReadTimeout(Access access);

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
  std::string error;              ///< The last error of either thread; empty if there was none.
};

/// Whether two values of HostState::started_s are of the same run of a server.
bool IsSameRun(uint64_t one_started_s, uint64_t other_started_s);

/// Whether replication is broken, so that neither waiting nor following again helps: what arrived cannot be
/// applied, or the slave asks for transactions that its master does not have (error 1236).
bool IsBroken(const Following& following);

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
  std::string state;  ///< What it does, in the server's words: "Waiting for table metadata lock".
};
inline constexpr uint64_t kSlowStatementS = 5;

/// What a host reports about itself.
struct HostState {
  Host host;
  std::string version;
  uint64_t server_id = 0;
  bool read_only = false;
  bool binlog = false;
  bool log_slave_updates = false;
  bool gtid_strict = false;
  uint64_t gtid_domain = 0;
  /// The last transaction of each domain that it has, "0-1-17,...". While a channel copies shards to it, only
  /// transactions in its binary log count (@@gtid_binlog_pos).
  std::string gtid;
  /// The last transaction of each server in each domain that is in its binary log (@@gtid_binlog_state).
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

/// UNAVAILABLE, with the reason, if what a master commits does not come to its slave now, or is not applied
/// there.
absl::Status CheckReplicates(const Host& slave, const HostState& state, const Host& master);

/// Returns how many transactions up to `gtid` a slave has not received. What it has received counts, whether
/// or not it is applied.
uint64_t CountNotReceived(const std::string& gtid, const HostState& slave);

/// The tables in each database of a shard; databases of shards that have moved away ("db00017_moved")
/// included.
using HostTables = std::map<std::string, std::set<std::string>>;

/// The lock of a server (GET_LOCK) that the one operator who changes it holds (HostAdmin::Claim).
inline constexpr char kOperatorLock[] = "kvstore_operator";

/// How long a running statement may prevent that a host is made read-only.
inline constexpr std::chrono::seconds kStopWrites{1};

/// An operator's connection to a host. Every error names the host: UNAVAILABLE if it cannot be reached,
/// FAILED_PRECONDITION if rights are missing or the server is not MariaDB. Externally synchronised.
class HostAdmin {
 public:
  static absl::StatusOr<std::unique_ptr<HostAdmin>> Open(const Host& host, const Access& access);
  /// Opens a connection with a long read timeout, and claims the host.
  static absl::StatusOr<std::unique_ptr<HostAdmin>> OpenClaimed(const Host& host, const Access& access);

  const Host& host() const { return host_; }
  /// Keeps other operators from changing this host as long as this connection lives. The claim is a lock of
  /// the connection itself: an operator who has lost the claim has lost the connection too, and can change
  /// nothing any more. FAILED_PRECONDITION if another connection has the claim.
  absl::Status Claim();
  /// Claims the host as Claim does, and ends the connection of whoever has the claim: for an emergency, in
  /// which the ledger has taken away the claims of others, one of whom may hang.
  absl::Status TakeClaim();
  /// Returns the ID of this connection if it holds the claim; ABORTED if it does not.
  absl::StatusOr<uint64_t> ClaimConnectionId();
  absl::StatusOr<HostState> Read();
  /// The server walks over all its connections for this. For display only: no change of roles depends on it.
  absl::StatusOr<SlowStatements> ReadSlow();
  absl::StatusOr<HostTables> ReadTables();
  /// Returns all databases but the server's own.
  absl::StatusOr<std::vector<std::string>> ReadDatabases();
  /// Returns the size in bytes of the files that hold shards, without tables of MyRocks. Slow where there are
  /// thousands of tables.
  absl::StatusOr<uint64_t> ReadSize();
  /// Creates the database of an ID shard, with the tables of those datasets that are on ID shards. What
  /// exists stays, and tables of a dataset that migrates or a shard that moves are left alone.
  ///
  /// datasets  The datasets as the caller has read them.
  /// read      Reads them again, so that a dataset that changed since then is noticed.
  absl::Status MakeShard(uint32_t shard, uint32_t mod_shards, const std::vector<DatasetSpec>& datasets,
                         const mysql::ReadSpecs& read);

  /// Makes the host read-only: from then on no client can write, nor commit what it has begun. UNAVAILABLE if
  /// a running statement prevents that for longer than `wait`; nothing has changed then.
  absl::Status StopWrites(std::chrono::seconds wait);
  absl::Status AllowWrites();
  /// Ends all connections that clients have now, but not those of replication, nor this one. Returns how many
  /// there were. Called after StopWrites, so that clients which connect again find the host read-only.
  absl::StatusOr<uint64_t> EndClients();

  /// Waits until a slave has received all up to this GTID, whether or not it has applied it;
  /// DEADLINE_EXCEEDED after `wait`.
  absl::Status AwaitReceived(const std::string& gtid, std::chrono::milliseconds wait);
  /// Waits until a slave has applied all up to this GTID; DEADLINE_EXCEEDED after `wait`.
  absl::Status AwaitGtid(const std::string& gtid, std::chrono::milliseconds wait);
  /// Stops receiving, and waits until all that was received is applied. DEADLINE_EXCEEDED after `wait`;
  /// FAILED_PRECONDITION, with what to do, if the slave does not apply.
  absl::Status ApplyAll(std::chrono::milliseconds wait);
  /// Stops replicating and forgets the master. From then on commits wait for a slave whenever one is
  /// connected. Does not change whether the host takes writes.
  absl::Status BecomeMaster();
  /// Sets how commits of a master wait (the fields of HostState). If the master had stopped waiting because
  /// its slave was behind or away, its commits wait again from then on.
  absl::Status SetSemiSync(bool wait_no_slave, uint64_t timeout_ms);
  /// Makes a master acknowledge commits without a slave, those that are waiting now too: switches
  /// wait_no_slave off, and ends the connections of all slaves, so that a slave which hangs, or whose lost
  /// connection the master has not noticed, is not waited for either. UNAVAILABLE if slaves keep connecting
  /// again.
  absl::Status StopWaitingForSlaves();
  /// Replicates from a master, beginning with what this host lacks; the host may have been a master itself.
  absl::Status Follow(const Host& master, const Access& access);

  /// Calls `work` with the connection and returns its Status or StatusOr. `work` may throw sql::SQLException,
  /// which becomes a Status that names the host.
  template <typename Work>
  auto WithConnection(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&>;

 private:
  HostAdmin(Host host, std::unique_ptr<mysql::Connection> connection)
      : host_(std::move(host)), connection_(std::move(connection)) {}
  absl::Status ToStatus(const sql::SQLException& error) const;

  const Host host_;
  const std::unique_ptr<mysql::Connection> connection_;
};

/// Returns FAILED_PRECONDITION. The text says what stands in the way, and what to do.
inline absl::Status Refuse(const std::string& text) { return absl::FailedPreconditionError(text); }

// ---- implementation ----

template <typename Work>
auto HostAdmin::WithConnection(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&> {
  try {
    return work(*connection_);
  } catch (const sql::SQLException& error) {
    return ToStatus(error);
  }
}

}  // namespace kvstore::shardops
