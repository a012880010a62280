#include "shardops/host.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/mysql/driver/errors.h"
#include "backends/mysql/driver/schema.h"
#include "base/clock.h"
#include "shardops/channel_settings.h"
#include "shardops/gtid.h"

namespace kvstore::shardops {
namespace {

using mysql::Rows;
using std::chrono::milliseconds;

/// How often a wait asks the server.
constexpr milliseconds kPollInterval{20};
/// How often TakeClaim ends the connection of somebody who has the claim.
constexpr int kTakeAttempts = 3;
/// How long the connections of slaves may take to end.
constexpr std::chrono::seconds kEndSlaves{5};
/// EndClients waits this long before it ends connections, so that acknowledgements in flight arrive.
constexpr milliseconds kAnswers{30};
/// ER_MASTER_INFO: the files in which a server notes whom it follows cannot be read.
constexpr int kDamagedNotes = 1201;

absl::Status At(const Host& host, const absl::Status& status) {
  return {status.code(), fmt::format("{}: {}", host.ToString(), std::string(status.message()))};
}

void EndConnections(mysql::Connection& connection, const std::vector<uint64_t>& ids) {
  for (const uint64_t id : ids) {
    try {
      connection.Run(fmt::format("KILL CONNECTION {}", id));
    } catch (const sql::SQLException&) {
      // The connection has ended by itself.
    }
  }
}

Host HostOf(const std::string& name, uint64_t port) {
  Host host;
  host.name = name;
  host.port = static_cast<uint16_t>(port);
  return host;
}

}  // namespace

Access WithLongReadTimeout(Access access) {
  constexpr uint32_t kDay = 86'400;
  access.admin.pool.read_timeout_s = kDay;
  return access;
}

absl::Status HostAdmin::ToStatus(const sql::SQLException& error) const {
  return At(host_, mysql::ToStatus(error));
}

absl::StatusOr<std::unique_ptr<HostAdmin>> HostAdmin::Open(const Host& host, const Access& access) {
  mysql::MySqlOptions options = access.admin;
  options.any_role = true;
  auto connection = mysql::Connection::Open(host, options);
  if (!connection.ok()) return At(host, connection.status());
  if (!(*connection)->traits().returning) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: is a MySQL server; only the replication of MariaDB servers can be operated", host.ToString()));
  }
  return std::unique_ptr<HostAdmin>(new HostAdmin(host, *std::move(connection)));
}

absl::StatusOr<std::unique_ptr<HostAdmin>> HostAdmin::OpenClaimed(const Host& host, const Access& access) {
  auto admin = Open(host, WithLongReadTimeout(access));
  if (!admin.ok()) return admin;
  if (auto status = (*admin)->Claim(); !status.ok()) return status;
  return admin;
}

absl::Status HostAdmin::Claim() {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    // This connection may be idle for long; the server must not end it and with it the claim.
    connection.Run("SET SESSION wait_timeout = 31536000");
    // It waits for a second, because the server may not have noticed yet that the last holder is gone.
    Rows rows = connection.Ask(fmt::format("SELECT GET_LOCK('{0}', 1), IS_USED_LOCK('{0}')", kOperatorLock));
    if (rows.Next() && !rows.IsNull(1) && rows.Uint(1) == 1) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{0}: another operator is at work there, by connection {1}: wait until it is done; if "
                    "nobody is, KILL {1} there",
                    host_.ToString(), rows.IsNull(2) ? "?" : rows.Bytes(2)));
  });
}

absl::Status HostAdmin::TakeClaim() {
  absl::Status claimed = Claim();
  for (int attempt = 0; absl::IsFailedPrecondition(claimed) && attempt < kTakeAttempts; ++attempt) {
    const absl::Status ended = WithConnection([](mysql::Connection& connection) -> absl::Status {
      Rows rows = connection.Ask(fmt::format("SELECT IS_USED_LOCK('{}')", kOperatorLock));
      if (rows.Next() && !rows.IsNull(1)) EndConnections(connection, {rows.Uint(1)});
      return absl::OkStatus();
    });
    if (!ended.ok()) return ended;
    claimed = Claim();
  }
  return claimed;
}

absl::StatusOr<uint64_t> HostAdmin::ClaimConnectionId() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    Rows rows = connection.Ask(fmt::format("SELECT CONNECTION_ID(), IS_USED_LOCK('{}')", kOperatorLock));
    if (rows.Next() && !rows.IsNull(2) && rows.Uint(1) == rows.Uint(2)) return rows.Uint(1);
    return absl::AbortedError(host_.ToString() +
                              ": this command has lost its claim on the host: run it again");
  });
}

// ---- reading ----

namespace {

/// Returns the connection ID of the IO thread; 0 if none runs. Must be read before what the thread has
/// received (ReadFollowing): if another thread begins in between, what the old one had received, and the
/// server has thrown away, is not attributed to the new one.
uint64_t ReadSlaveThread(mysql::Connection& connection) {
  Rows rows = connection.Ask(
      "SELECT COALESCE(MIN(id), 0) FROM information_schema.processlist WHERE command = 'Slave_IO'");
  return rows.Next() ? rows.Uint(1) : 0;
}

std::optional<Following> ReadFollowing(mysql::Connection& connection) {
  Rows rows = connection.Ask("SHOW SLAVE STATUS");
  if (!rows.Next()) return std::nullopt;
  Following following;
  following.master = HostOf(rows.Named("Master_Host"), std::stoul(rows.Named("Master_Port")));
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

}  // namespace

bool IsSameRun(uint64_t one_started_s, uint64_t other_started_s) {
  return std::max(one_started_s, other_started_s) - std::min(one_started_s, other_started_s) <= 1;
}

bool IsBroken(const Following& following) {
  return !following.applies || following.error.find("error 1236") != std::string::npos;
}

absl::Status CheckReplicates(const Host& slave, const HostState& state, const Host& master) {
  const auto broken = [&](std::string_view why) {
    return absl::UnavailableError(
        fmt::format("{}: does not replicate {}: {}", slave.ToString(), master.ToString(), why));
  };
  if (!state.following) return broken("follows nobody");
  const Following& following = *state.following;
  if (following.master != master) return broken(fmt::format("follows {}", following.master.ToString()));
  if (!following.applies || !following.receives) {
    if (!following.error.empty()) return broken(following.error);
    return broken(following.applies ? "is not connected to it" : "does not apply what comes from it");
  }
  return absl::OkStatus();
}

absl::StatusOr<SlowStatements> HostAdmin::ReadSlow() {
  return WithConnection([](mysql::Connection& connection) -> absl::StatusOr<SlowStatements> {
    Rows rows = connection.Ask(
        // Of the statement's text only the table is read: the rest has values of clients.
        fmt::format("SELECT COUNT(*) OVER (), id, REPLACE(REGEXP_SUBSTR(COALESCE(info, ''), "
                    "'(db|mod)[0-9]{{5}}`?[.]`?[a-z0-9_@]+'), '`', ''), time, COALESCE(state, '') FROM "
                    "information_schema.processlist WHERE command IN ('Query', 'Execute', 'Prepare') AND "
                    "user <> 'system user' AND time >= {} ORDER BY time DESC LIMIT 1",
                    kSlowStatementS));
    if (!rows.Next()) return SlowStatements{};
    return SlowStatements{rows.Uint(1), rows.Uint(2), rows.Bytes(3), rows.Uint(4), rows.Bytes(5)};
  });
}

absl::StatusOr<HostState> HostAdmin::Read() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<HostState> {
    HostState state{.host = host_};
    std::string logged;
    {
      const uint64_t before = WallClockMs();
      Rows rows = connection.Ask(
          "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS UNSIGNED), @@version, @@server_id, @@read_only, "
          "@@log_bin, @@gtid_strict_mode, @@gtid_current_pos, @@rpl_semi_sync_master_enabled, "
          "@@rpl_semi_sync_master_timeout, @@rpl_semi_sync_slave_enabled, @@max_allowed_packet, "
          "@@rpl_semi_sync_master_wait_no_slave, @@log_slave_updates, @@gtid_domain_id, @@gtid_binlog_pos, "
          "@@gtid_binlog_state, @@rpl_semi_sync_master_wait_point = 'AFTER_SYNC'");
      rows.Next();
      const uint64_t here = (before + WallClockMs()) / 2;
      state.started_s = rows.Uint(1) / 1000;
      state.clock_ahead_ms = static_cast<int64_t>(rows.Uint(1)) - static_cast<int64_t>(here);
      state.version = rows.Bytes(2);
      state.server_id = rows.Uint(3);
      state.read_only = rows.Uint(4) != 0;
      state.binlog = rows.Uint(5) != 0;
      state.gtid_strict = rows.Uint(6) != 0;
      state.gtid = rows.Bytes(7);
      state.semi_sync_master = rows.Uint(8) != 0;
      state.semi_sync_timeout_ms = rows.Uint(9);
      state.semi_sync_slave = rows.Uint(10) != 0;
      state.max_packet = rows.Uint(11);
      state.semi_sync_wait_no_slave = rows.Uint(12) != 0;
      state.log_slave_updates = rows.Uint(13) != 0;
      state.gtid_domain = rows.Uint(14);
      logged = rows.Bytes(15);
      state.gtid_state = rows.Bytes(16);
      state.semi_sync_hides = rows.Uint(17) != 0;
    }
    state.channels = ReadChannels(connection);
    // Transactions that a channel left out have advanced gtid_current_pos too, and no slave will ever have
    // them.
    if (!state.channels.empty()) state.gtid = logged;
    Rows rows = connection.Ask(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_master_status', "
        "'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_master_no_tx', 'Rpl_semi_sync_slave_status', "
        "'Threads_connected', 'Uptime')");
    while (rows.Next()) {
      const std::string name = rows.Bytes(1);
      if (name == "Rpl_semi_sync_master_status") state.semi_sync_active = rows.Bytes(2) == "ON";
      if (name == "Rpl_semi_sync_master_clients") state.semi_sync_slaves = std::stoull(rows.Bytes(2));
      if (name == "Rpl_semi_sync_master_no_tx") state.semi_sync_alone = std::stoull(rows.Bytes(2));
      if (name == "Uptime")
        state.started_s -= std::min<uint64_t>(state.started_s, std::stoull(rows.Bytes(2)));
      if (name == "Rpl_semi_sync_slave_status") state.semi_sync_slave_active = rows.Bytes(2) == "ON";
      if (name == "Threads_connected") state.connections = std::stoull(rows.Bytes(2));
    }
    const uint64_t thread = ReadSlaveThread(connection);
    state.following = ReadFollowing(connection);
    if (state.following) state.following->thread = thread;
    return state;
  });
}

absl::StatusOr<std::vector<std::string>> HostAdmin::ReadDatabases() {
  return WithConnection([](mysql::Connection& connection) -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> names;
    Rows rows = connection.Ask(
        "SELECT schema_name FROM information_schema.schemata "
        "WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')");
    while (rows.Next()) names.push_back(rows.Bytes(1));
    return names;
  });
}

absl::StatusOr<uint64_t> HostAdmin::ReadSize() {
  return WithConnection([](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    Rows files = connection.Ask(
        "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.innodb_sys_tablespaces "
        "WHERE name REGEXP '^(db|mod)[0-9]{5}(_moved)?/'");
    return files.Next() ? files.Uint(1) : 0;
  });
}

absl::StatusOr<HostTables> HostAdmin::ReadTables() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<HostTables> {
    HostTables tables;
    Rows rows = connection.Ask(
        "SELECT schema_name, table_name FROM information_schema.schemata "
        "LEFT JOIN information_schema.tables ON table_schema = schema_name "
        "WHERE schema_name REGEXP '^(db|mod)[0-9]{5}(_moved)?$'");
    while (rows.Next()) {
      auto& names = tables[rows.Bytes(1)];
      if (!rows.IsNull(2)) names.insert(rows.Bytes(2));
    }
    return tables;
  });
}

uint64_t CountNotReceived(const std::string& gtid, const HostState& slave) {
  const uint64_t applied = CountMissing(gtid, slave.gtid);
  return slave.following ? std::min(applied, CountMissing(gtid, slave.following->received)) : applied;
}

// ---- changing ----

absl::Status HostAdmin::MakeShard(uint32_t shard, uint32_t mod_shards,
                                  const std::vector<DatasetSpec>& datasets, const mysql::ReadSpecs& read) {
  return WithConnection([&](mysql::Connection& connection) {
    mysql::LeftAlone left_alone;
    return mysql::MakeShard(connection, mysql::Space::kId, shard, mod_shards, datasets, read, left_alone);
  });
}

absl::Status HostAdmin::StopWrites(std::chrono::seconds wait) {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run(
        fmt::format("SET STATEMENT lock_wait_timeout = {} FOR SET GLOBAL read_only = 1", wait.count()));
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::AllowWrites() {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run("SET GLOBAL read_only = 0");
    return absl::OkStatus();
  });
}

absl::StatusOr<uint64_t> HostAdmin::EndClients() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    std::vector<uint64_t> ids;
    {
      Rows rows = connection.Ask(
          "SELECT id FROM information_schema.processlist "
          "WHERE id <> CONNECTION_ID() AND user <> 'system user' AND command NOT IN "
          "('Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker', 'Daemon')");
      while (rows.Next()) ids.push_back(rows.Uint(1));
    }
    std::this_thread::sleep_for(kAnswers);
    EndConnections(connection, ids);
    return ids.size();
  });
}

absl::Status HostAdmin::AwaitGtid(const std::string& gtid, milliseconds wait) {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    Rows rows = connection.Ask(fmt::format("SELECT MASTER_GTID_WAIT({}, {:.3f})", Quoted(gtid),
                                           std::chrono::duration<double>(wait).count()));
    if (rows.Next() && !rows.IsNull(1) && rows.Bytes(1) == "0") return absl::OkStatus();
    return absl::DeadlineExceededError(
        fmt::format("{}: has not applied all up to {} in {} ms", host_.ToString(), gtid, wait.count()));
  });
}

absl::Status HostAdmin::AwaitReceived(const std::string& gtid, milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto state = Read();
    if (!state.ok()) return state.status();
    if (CountNotReceived(gtid, *state) == 0) return absl::OkStatus();
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("{}: has not received all up to {} in {} ms", host_.ToString(), gtid, wait.count()));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

absl::Status HostAdmin::ApplyAll(milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    connection.Run("STOP SLAVE IO_THREAD");
    for (;;) {
      const auto following = ReadFollowing(connection);
      if (!following) return absl::OkStatus();
      // The state alone may be from before the last event arrived.
      Rows applied = connection.Ask("SELECT @@GLOBAL.gtid_current_pos");
      if (following->caught_up && applied.Next() &&
          CountMissing(following->received, applied.Bytes(1)) == 0) {
        return absl::OkStatus();
      }
      if (!following->applies) {
        return absl::FailedPreconditionError(fmt::format(
            "{}: what came from its master is not applied: {}\nMend that, START SLAVE SQL_THREAD there, and "
            "run the command again (nothing else while the master is away: what has come in would be "
            "thrown away)",
            host_.ToString(), following->error));
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::DeadlineExceededError(
            fmt::format("{}: has not applied all that it has in {} ms", host_.ToString(), wait.count()));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

absl::Status HostAdmin::BecomeMaster() {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run("STOP SLAVE");
    connection.Run("RESET SLAVE ALL");
    // Commits must not wait while there is no slave: the first one has yet to connect.
    connection.Run(
        "SET GLOBAL rpl_semi_sync_slave_enabled = OFF, rpl_semi_sync_master_wait_no_slave = OFF, "
        "rpl_semi_sync_master_enabled = ON");
    // A server that was started again runs its channels by itself, with the configuration's setting.
    for (const std::string& name : ReadChannels(connection)) ReconnectChannel(connection, name);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::SetSemiSync(bool wait_no_slave, uint64_t timeout_ms) {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run(
        fmt::format("SET GLOBAL rpl_semi_sync_master_timeout = {}, rpl_semi_sync_master_wait_no_slave = {}",
                    timeout_ms, wait_no_slave ? "ON" : "OFF"));
    // A master that has stopped waiting resumes when a slave acknowledges an event, so one is written that
    // changes nothing. Switching semi-synchronous replication off and on instead would leave commits of that
    // moment waiting for acknowledgements that no slave was asked for.
    connection.Run("DROP TABLE IF EXISTS mysql.kvstore_none");
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::StopWaitingForSlaves() {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    connection.Run("SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF");
    const auto deadline = std::chrono::steady_clock::now() + kEndSlaves;
    for (;;) {
      std::vector<uint64_t> ids;
      {
        Rows rows =
            connection.Ask("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'");
        while (rows.Next()) ids.push_back(rows.Uint(1));
      }
      EndConnections(connection, ids);
      {
        Rows rows = connection.Ask("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'");
        if (rows.Next() && rows.Bytes(2) == "0") return absl::OkStatus();
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::UnavailableError(fmt::format(
            "{}: has slaves whose connections do not end: STOP SLAVE on those of them that are no longer to "
            "be, then run the command again",
            host_.ToString()));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

absl::Status HostAdmin::Follow(const Host& master, const Access& access) {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run("STOP SLAVE");
    // What a channel brings to this host would not reach its new master.
    for (const std::string& name : ReadChannels(connection)) EndChannel(connection, name);
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
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
