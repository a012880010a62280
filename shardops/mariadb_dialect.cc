#include <cppconn/exception.h>
#include <fmt/format.h>

#include "shardops/channel_settings.h"
#include "shardops/dialect.h"
#include "shardops/gtid.h"
#include "shardops/quoted.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;
using std::chrono::milliseconds;

/// ER_MASTER_INFO: the files in which a server notes whom it follows cannot be read.
constexpr int kDamagedNotes = 1201;

/// Returns the connection ID of the IO thread; 0 if none runs. Must be read before what the thread has
/// received (ReadFollowing): if another thread begins in between, what the old one had received, and the
/// server has thrown away, is not attributed to the new one.
uint64_t ReadSlaveThread(Connection& connection) {
  Rows rows = connection.Ask(
      "SELECT COALESCE(MIN(id), 0) FROM information_schema.processlist WHERE command = 'Slave_IO'");
  return rows.Next() ? rows.Uint(1) : 0;
}

/// Counts into the position what is in the binary log and was not noted, of the domains that the position
/// has: a server may have been killed after it had logged a statement that is no transaction (DDL). It would
/// get that again, and refuse it. Nothing may be replicated meanwhile.
void NoteWhatIsLogged(Connection& connection) {
  std::string noted;
  std::string logged;
  uint64_t server = 0;
  if (Rows rows =
          connection.Ask("SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_pos, @@GLOBAL.server_id");
      rows.Next()) {
    noted = rows.Bytes(1);
    logged = rows.Bytes(2);
    server = rows.Uint(3);
  }
  const std::string strange = PositionOfOtherDomains(logged, noted, 0);
  const std::string all = LatestOfEachDomain(noted, PositionOfOtherDomains(logged, strange, server));
  if (CountMissing(all, noted) > 0) connection.Run("SET GLOBAL gtid_slave_pos = " + Quoted(all));
}

class OfMariaDb final : public Dialect {
 public:
  Engine engine() const override { return Engine::kMariaDb; }
  absl::Status Check(Connection& /*connection*/) const override { return absl::OkStatus(); }

  void ReadState(Connection& connection, HostState& state) const override {
    std::string logged;
    {
      const Rows rows = ReadVariables(
          connection,
          "@@gtid_strict_mode, @@gtid_current_pos, @@rpl_semi_sync_master_enabled, "
          "@@rpl_semi_sync_master_timeout, @@rpl_semi_sync_slave_enabled, "
          "@@rpl_semi_sync_master_wait_no_slave, @@log_slave_updates, @@gtid_domain_id, @@gtid_binlog_pos, "
          "@@gtid_binlog_state, @@rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
          state);
      state.gtid_strict = rows.Uint(kOwnColumn) != 0;
      state.gtid = rows.Bytes(kOwnColumn + 1);
      state.semi_sync_master = rows.Uint(kOwnColumn + 2) != 0;
      state.semi_sync_timeout_ms = rows.Uint(kOwnColumn + 3);
      state.semi_sync_slave = rows.Uint(kOwnColumn + 4) != 0;
      state.semi_sync_wait_no_slave = rows.Uint(kOwnColumn + 5) != 0;
      state.log_slave_updates = rows.Uint(kOwnColumn + 6) != 0;
      state.gtid_domain = rows.Uint(kOwnColumn + 7);
      logged = rows.Bytes(kOwnColumn + 8);
      state.gtid_state = rows.Bytes(kOwnColumn + 9);
      state.semi_sync_hides = rows.Uint(kOwnColumn + 10) != 0;
    }
    state.channels = ReadChannels(connection);
    // Transactions that a channel left out have advanced gtid_current_pos too, and no slave will ever have
    // them.
    if (!state.channels.empty()) state.gtid = logged;
    ReadStatus(connection, "master", "slave", state);
    const uint64_t thread = ReadSlaveThread(connection);
    state.following = ReadFollowing(connection);
    if (state.following) state.following->thread = thread;
  }

  std::optional<Following> ReadFollowing(Connection& connection) const override {
    Rows rows = connection.Ask("SHOW SLAVE STATUS");
    if (!rows.Next()) return std::nullopt;
    Following following;
    following.master.name = rows.Named("Master_Host");
    following.master.port = static_cast<uint16_t>(std::stoul(rows.Named("Master_Port")));
    const std::string io = rows.Named("Slave_IO_Running");
    following.receives = io == "Yes";
    following.reconnects = io == "Connecting" || io == "Preparing";
    following.applies = rows.Named("Slave_SQL_Running") == "Yes";
    following.caught_up =
        following.applies &&
        rows.Named("Slave_SQL_Running_State").find("has read all relay log") != std::string::npos;
    if (const std::string lag = rows.Named("Seconds_Behind_Master"); !lag.empty()) {
      following.lag_s = std::stoull(lag);
    }
    following.received = rows.Named("Gtid_IO_Pos");
    following.error = rows.Named("Last_SQL_Error");
    if (following.error.empty()) following.error = rows.Named("Last_IO_Error");
    return following;
  }

  SlowStatements ReadSlow(Connection& connection) const override {
    Rows rows = connection.Ask(
        // Only the table is read of the statement's text: the rest has values of clients.
        fmt::format("SELECT COUNT(*) OVER (), id, REPLACE(REGEXP_SUBSTR(COALESCE(info, ''), "
                    "'(db|mod)[0-9]{{5}}`?[.]`?[a-z0-9_@]+'), '`', ''), time, COALESCE(state, '') FROM "
                    "information_schema.processlist WHERE command IN ('Query', 'Execute', 'Prepare') AND "
                    "user <> 'system user' AND time >= {} ORDER BY time DESC LIMIT 1",
                    kSlowStatementS));
    if (!rows.Next()) return SlowStatements{};
    return SlowStatements{rows.Uint(1), rows.Uint(2), rows.Bytes(3), rows.Uint(4), rows.Bytes(5)};
  }

  uint64_t ReadSize(Connection& connection) const override {
    Rows files = connection.Ask(
        "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.innodb_sys_tablespaces "
        "WHERE name REGEXP '^(db|mod)[0-9]{5}(_moved)?/'");
    return files.Next() ? files.Uint(1) : 0;
  }

  std::vector<uint64_t> Clients(Connection& connection) const override {
    return ReadIds(connection,
                   "SELECT id FROM information_schema.processlist "
                   "WHERE id <> CONNECTION_ID() AND user <> 'system user' AND command NOT IN "
                   "('Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker', 'Daemon')");
  }

  std::vector<uint64_t> WritingClients(Connection& connection) const override {
    return ReadIds(connection,
                   "SELECT id FROM information_schema.processlist "
                   "WHERE id <> CONNECTION_ID() AND user <> 'system user' AND command IN "
                   "('Query', 'Execute') AND COALESCE(info, '') NOT LIKE 'SELECT%'");
  }

  std::vector<uint64_t> Slaves(Connection& connection) const override {
    return ReadIds(connection, "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'");
  }

  uint64_t SemiSyncSlaves(Connection& connection) const override {
    Rows rows = connection.Ask("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'");
    return rows.Next() ? std::stoull(rows.Bytes(2)) : 0;
  }

  bool HasAppliedAll(Connection& connection, const Following& following) const override {
    // The state alone may be from before the last event arrived.
    Rows applied = connection.Ask("SELECT @@GLOBAL.gtid_current_pos");
    return following.caught_up && applied.Next() && CountMissing(following.received, applied.Bytes(1)) == 0;
  }

  bool AwaitGtid(Connection& connection, const std::string& gtid, milliseconds wait) const override {
    Rows rows = connection.Ask(fmt::format("SELECT MASTER_GTID_WAIT({}, {:.3f})", Quoted(gtid),
                                           std::chrono::duration<double>(wait).count()));
    return rows.Next() && !rows.IsNull(1) && rows.Bytes(1) == "0";
  }

  void StopWrites(Connection& connection, std::chrono::seconds wait) const override {
    connection.Run(
        fmt::format("SET STATEMENT lock_wait_timeout = {} FOR SET GLOBAL read_only = 1", wait.count()));
  }

  void AllowWrites(Connection& connection) const override { connection.Run("SET GLOBAL read_only = 0"); }

  void StopReceiving(Connection& connection) const override { connection.Run("STOP SLAVE IO_THREAD"); }

  void BecomeMaster(Connection& connection) const override {
    ForgetMaster(connection);
    // Commits must not wait while there is no slave: the first one has yet to connect.
    connection.Run(
        "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_wait_no_slave = OFF, "
        "rpl_semi_sync_master_enabled = ON");
    // A server that was started again runs its channels by itself, with the configuration's setting.
    for (const std::string& name : ReadChannels(connection)) ReconnectChannel(connection, name);
  }

  void SetSemiSync(Connection& connection, bool wait_no_slave, uint64_t timeout_ms) const override {
    connection.Run(
        fmt::format("SET GLOBAL rpl_semi_sync_master_timeout = {}, rpl_semi_sync_master_wait_no_slave = {}",
                    timeout_ms, wait_no_slave ? "ON" : "OFF"));
  }

  void EnableSemiSync(Connection& connection, bool on) const override {
    connection.Run(fmt::format("SET GLOBAL rpl_semi_sync_master_enabled = {}", on ? "ON" : "OFF"));
  }

  void StopWaitingForNoSlave(Connection& connection) const override {
    connection.Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
  }

  void Follow(Connection& connection, const Host& master, const Access& access) const override {
    connection.Run("STOP SLAVE");
    // Transactions that a channel brings to this host would not reach its new master.
    for (const std::string& name : ReadChannels(connection)) EndChannel(connection, name);
    NoteWhatIsLogged(connection);
    connection.Run("SET GLOBAL rpl_semi_sync_master_enabled = OFF, rpl_semi_sync_slave_enabled = ON");
    const bool led = !ReadFollowing(connection).has_value();
    // master_demote_to_slave counts what it wrote as a master into its position, which would otherwise be
    // that from before it became a master.
    const auto follow = [&] {
      connection.Run(fmt::format(
          "CHANGE MASTER TO master_host = {}, master_port = {}, master_user = {}, master_password = {}, "
          "master_connect_retry = 1, {}",
          Quoted(master.name), master.port, Quoted(access.replication_user),
          Quoted(access.replication_password),
          led ? "master_use_gtid = slave_pos, master_demote_to_slave = 1" : "master_use_gtid = slave_pos"));
      connection.Run("START SLAVE");
    };
    try {
      follow();
    } catch (const sql::SQLException& error) {
      if (error.getErrorCode() != kDamagedNotes) throw;
      // A server that was killed may have written them in part. They have nothing that is needed: how far the
      // host has come is in a table, and what it had not applied yet it gets again.
      connection.Run("RESET SLAVE ALL");
      follow();
    }
  }

  void ForgetMaster(Connection& connection) const override {
    connection.Run("STOP SLAVE");
    connection.Run("RESET SLAVE ALL");
  }
};

}  // namespace

const Dialect& MariaDbDialect() {
  static const OfMariaDb dialect;
  return dialect;
}

}  // namespace kvstore::shardops
