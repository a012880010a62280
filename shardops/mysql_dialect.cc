#include <cppconn/exception.h>
#include <fmt/format.h>

#include "shardops/dialect.h"
#include "shardops/gtid.h"
#include "shardops/mysql_replication.h"
#include "shardops/quoted.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;
using std::chrono::milliseconds;

/// The channel by which a slave replicates from its master. Statements name it, since a host to which shards
/// move has another one beside it.
constexpr char kFromMaster[] = "";

/// As of MariaDB: must be read before what the thread has received. The table of connections would name the
/// thread of each channel, but not while it tries to reach a master that is gone.
uint64_t ReadReceiver(Connection& connection) {
  Rows rows = connection.Ask(
      "SELECT COALESCE(MIN(processlist_id), 0) FROM performance_schema.threads WHERE name = "
      "'thread/sql/replica_io'");
  return rows.Next() ? rows.Uint(1) : 0;
}

class OfMySql final : public Dialect {
 public:
  Engine engine() const override { return Engine::kMySql; }

  absl::Status Check(Connection& connection) const override {
    // SHOW BINARY LOG STATUS and the like are of 8.4, which is the oldest release that is still maintained.
    Rows version = connection.Ask("SELECT @@version, @@performance_schema");
    version.Next();
    if (std::stoi(version.Bytes(1)) < 9 && !version.Bytes(1).starts_with("8.4")) {
      return absl::FailedPreconditionError(
          fmt::format("its version is {}; the replication of MySQL servers can be operated from 8.4 on",
                      version.Bytes(1)));
    }
    if (version.Uint(2) == 0) {
      return absl::FailedPreconditionError(
          "performance_schema is OFF: set it ON in its configuration, and start it again");
    }
    Rows plugins = connection.Ask(
        "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_status = 'ACTIVE' AND plugin_name IN "
        "('rpl_semi_sync_source', 'rpl_semi_sync_replica')");
    if (plugins.Next() && plugins.Uint(1) == 2) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "lacks the plugins of semi-synchronous replication: set plugin_load_add = "
        "'semisync_source.so;semisync_replica.so' in its configuration, and start it again");
  }

  void ReadState(Connection& connection, HostState& state) const override {
    {
      const Rows rows = ReadVariables(
          connection,
          "@@gtid_mode = 'ON' AND @@enforce_gtid_consistency = 'ON', @@GLOBAL.gtid_executed, "
          "@@rpl_semi_sync_source_enabled, @@rpl_semi_sync_source_timeout, @@rpl_semi_sync_replica_enabled, "
          "@@rpl_semi_sync_source_wait_no_replica, @@log_replica_updates, "
          "@@rpl_semi_sync_source_wait_point = 'AFTER_SYNC', @@offline_mode, @@server_uuid",
          state);
      state.gtid_strict = rows.Uint(kOwnColumn) != 0;
      state.gtid = OneLine(rows.Bytes(kOwnColumn + 1));
      state.gtid_state = state.gtid;
      state.semi_sync_master = rows.Uint(kOwnColumn + 2) != 0;
      state.semi_sync_timeout_ms = rows.Uint(kOwnColumn + 3);
      state.semi_sync_slave = rows.Uint(kOwnColumn + 4) != 0;
      state.semi_sync_wait_no_slave = rows.Uint(kOwnColumn + 5) != 0;
      state.log_slave_updates = rows.Uint(kOwnColumn + 6) != 0;
      state.semi_sync_hides = rows.Uint(kOwnColumn + 7) != 0;
      state.closed = rows.Uint(kOwnColumn + 8) != 0;
      state.server_uuid = rows.Bytes(kOwnColumn + 9);
    }
    ForEachChannel(connection, [&](const std::string& name, const Rows& /*rows*/) {
      if (!name.empty()) state.channels.push_back(name);
    });
    ReadStatus(connection, "source", "replica", state);
    const uint64_t thread = ReadReceiver(connection);
    state.following = ReadFollowing(connection);
    if (state.following) state.following->thread = thread;
  }

  std::optional<Following> ReadFollowing(Connection& connection) const override {
    std::optional<Following> found;
    ForEachChannel(connection, [&](const std::string& name, const Rows& rows) {
      if (!name.empty()) return;
      Following following;
      following.master.name = rows.Named("Source_Host");
      following.master.port = static_cast<uint16_t>(std::stoul(rows.Named("Source_Port")));
      const std::string io = rows.Named("Replica_IO_Running");
      following.receives = io == "Yes";
      following.reconnects = io == "Connecting";
      following.applies = rows.Named("Replica_SQL_Running") == "Yes";
      following.caught_up =
          following.applies &&
          rows.Named("Replica_SQL_Running_State").find("has read all relay log") != std::string::npos;
      if (const std::string lag = rows.Named("Seconds_Behind_Source"); !lag.empty()) {
        following.lag_s = std::stoull(lag);
      }
      if (const uint64_t attempts = std::stoull(rows.Named("Source_Retry_Count")); attempts > 0) {
        following.gives_up_s = attempts * std::stoull(rows.Named("Connect_Retry"));
      }
      // The set of received transactions lacks those that arrived before the relay log was begun anew.
      // Applied ones have arrived, so they are added.
      following.received =
          UnionOfSets(OneLine(rows.Named("Retrieved_Gtid_Set")), OneLine(rows.Named("Executed_Gtid_Set")));
      following.error = rows.Named("Last_SQL_Error");
      if (following.error.empty()) following.error = rows.Named("Last_IO_Error");
      found = following;
    });
    return found;
  }

  SlowStatements ReadSlow(Connection& connection) const override {
    Rows rows = connection.Ask(
        // Only the table is read of the statement's text: the rest has values of clients.
        fmt::format(
            "SELECT COUNT(*) OVER (), id, COALESCE(REPLACE(REGEXP_SUBSTR(COALESCE(info, ''), "
            "'(db|mod)[0-9]{{5}}`?[.]`?[a-z0-9_@]+'), '`', ''), ''), time, COALESCE(state, '') FROM "
            "performance_schema.processlist WHERE command IN ('Query', 'Execute', 'Prepare') AND "
            "user NOT IN ('system user', 'event_scheduler') AND time >= {} ORDER BY time DESC LIMIT 1",
            kSlowStatementS));
    if (!rows.Next()) return SlowStatements{};
    return SlowStatements{rows.Uint(1), rows.Uint(2), rows.Bytes(3), rows.Uint(4), rows.Bytes(5)};
  }

  uint64_t ReadSize(Connection& connection) const override {
    Rows files = connection.Ask(
        "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.innodb_tablespaces "
        "WHERE name REGEXP '^(db|mod)[0-9]{5}(_moved)?/'");
    return files.Next() ? files.Uint(1) : 0;
  }

  std::vector<uint64_t> Clients(Connection& connection) const override {
    return ReadIds(
        connection,
        "SELECT id FROM performance_schema.processlist WHERE id <> CONNECTION_ID() AND user NOT IN "
        "('system user', 'event_scheduler') AND command NOT IN ('Binlog Dump', "
        "'Binlog Dump GTID', 'Connect', 'Daemon')");
  }

  std::vector<uint64_t> WritingClients(Connection& connection) const override {
    return ReadIds(
        connection,
        "SELECT id FROM performance_schema.processlist WHERE id <> CONNECTION_ID() AND user NOT IN "
        "('system user', 'event_scheduler') AND command IN ('Query', 'Execute') AND "
        "COALESCE(info, '') NOT LIKE 'SELECT%'");
  }

  std::vector<uint64_t> Slaves(Connection& connection) const override {
    return ReadIds(connection,
                   "SELECT id FROM performance_schema.processlist WHERE command IN ('Binlog Dump', 'Binlog "
                   "Dump GTID')");
  }

  uint64_t SemiSyncSlaves(Connection& connection) const override {
    Rows rows = connection.Ask("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'");
    return rows.Next() ? std::stoull(rows.Bytes(2)) : 0;
  }

  bool HasAppliedAll(Connection& connection, const Following& following) const override {
    Rows applied = connection.Ask("SELECT @@GLOBAL.gtid_executed");
    return applied.Next() && CountMissing(following.received, OneLine(applied.Bytes(1))) == 0;
  }

  bool AwaitGtid(Connection& connection, const std::string& gtid, milliseconds wait) const override {
    // To WAIT_FOR_EXECUTED_GTID_SET 0 seconds are for ever.
    Rows rows = connection.Ask(
        wait.count() == 0 ? fmt::format("SELECT 1 - GTID_SUBSET({}, @@GLOBAL.gtid_executed)", Quoted(gtid))
                          : fmt::format("SELECT WAIT_FOR_EXECUTED_GTID_SET({}, {:.3f})", Quoted(gtid),
                                        std::chrono::duration<double>(wait).count()));
    return rows.Next() && !rows.IsNull(1) && rows.Bytes(1) == "0";
  }

  void StopWrites(Connection& connection, std::chrono::seconds wait) const override {
    Rows before = connection.Ask("SELECT @@lock_wait_timeout, @@global.read_only");
    before.Next();
    const uint64_t usual = before.Uint(1);
    const bool wrote = before.Uint(2) == 0;
    const auto set_wait = [&](uint64_t seconds) {
      connection.Run(fmt::format("SET SESSION lock_wait_timeout = {}", seconds));
    };
    set_wait(static_cast<uint64_t>(wait.count()));
    try {
      // super_read_only holds for administrators too, and implies read_only.
      connection.Run("SET GLOBAL super_read_only = ON");
    } catch (const sql::SQLException&) {
      set_wait(usual);
      // The server sets read_only first, and may have waited in vain for the other one.
      if (wrote) connection.Run("SET GLOBAL read_only = 0");
      throw;
    }
    set_wait(usual);
  }

  void AllowWrites(Connection& connection) const override {
    bool closed = false;
    {
      Rows rows = connection.Ask("SELECT @@offline_mode");
      closed = rows.Next() && rows.Uint(1) != 0;
    }
    // If offline_mode is on, the process that fenced the host (StopClients) was stopped on the way, and
    // commits may wait for nobody.
    if (closed) EnableSemiSync(connection, true);
    connection.Run("SET GLOBAL read_only = 0");
    if (closed) connection.Run("SET GLOBAL offline_mode = OFF");
  }

  void StopReceiving(Connection& connection) const override {
    connection.Run("STOP REPLICA IO_THREAD FOR CHANNEL ''");
  }

  void BecomeMaster(Connection& connection) const override {
    ForgetMaster(connection);
    // Commits must not wait while there is no slave: the first one has yet to connect.
    connection.Run(
        "SET GLOBAL rpl_semi_sync_replica_enabled = OFF, rpl_semi_sync_source_wait_no_replica = OFF, "
        "rpl_semi_sync_source_enabled = ON");
  }

  void SetSemiSync(Connection& connection, bool wait_no_slave, uint64_t timeout_ms) const override {
    connection.Run(
        fmt::format("SET GLOBAL rpl_semi_sync_source_timeout = {}, rpl_semi_sync_source_wait_no_replica = {}",
                    timeout_ms, wait_no_slave ? "ON" : "OFF"));
  }

  void EnableSemiSync(Connection& connection, bool on) const override {
    connection.Run(fmt::format("SET GLOBAL rpl_semi_sync_source_enabled = {}", on ? "ON" : "OFF"));
  }

  void StopWaitingForNoSlave(Connection& connection) const override {
    connection.Run("SET GLOBAL rpl_semi_sync_source_wait_no_replica = OFF");
  }

  void Follow(Connection& connection, const Host& master, const Access& access) const override {
    StopReplicating(connection, kFromMaster);
    // Transactions that a channel of a move brings to this host would not reach its new master.
    std::vector<std::string> channels;
    ForEachChannel(connection, [&](const std::string& name, const Rows& /*rows*/) {
      if (!name.empty()) channels.push_back(name);
    });
    for (const std::string& name : channels) RemoveChannel(connection, name);
    connection.Run("SET GLOBAL rpl_semi_sync_source_enabled = OFF, rpl_semi_sync_replica_enabled = ON");
    // A replica gives up after 10 attempts unless it is told otherwise. The source's public key is for
    // caching_sha2_password where the connection has no TLS. By the heartbeats a master notices soon that its
    // slave has gone, and stops waiting for it if it is set so.
    connection.Run(
        fmt::format("CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {}, SOURCE_USER = {}, "
                    "SOURCE_PASSWORD = "
                    "{}, SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, "
                    "SOURCE_RETRY_COUNT = 4294967295, SOURCE_HEARTBEAT_PERIOD = 2 FOR CHANNEL ''",
                    Quoted(master.name), master.port, Quoted(access.replication_user),
                    Quoted(access.replication_password)));
    connection.Run("START REPLICA FOR CHANNEL ''");
  }

  void ForgetMaster(Connection& connection) const override { RemoveChannel(connection, kFromMaster); }
};

}  // namespace

const Dialect& MySqlDialect() {
  static const OfMySql dialect;
  return dialect;
}

}  // namespace kvstore::shardops
