#include "shardops/dialect.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace kvstore::shardops {

using mysql::Rows;

const Words& WordsOf(Engine engine) {
  static constexpr Words kMariaDb{
      .engine = "MariaDB",
      .master_settings = "log_bin and gtid_strict_mode",
      .slave_settings = "log_bin, log_slave_updates and gtid_strict_mode",
      .semi_sync = "rpl_semi_sync_master_enabled",
      .wait_no_slave = "rpl_semi_sync_master_wait_no_slave",
      .wait_timeout = "rpl_semi_sync_master_timeout",
      .wait_point = "rpl_semi_sync_master_wait_point",
      .stop_slave = "STOP SLAVE",
      .forget_master = "STOP SLAVE; RESET SLAVE ALL",
      .start_applying = "START SLAVE SQL_THREAD",
      .stop_channels = "STOP ALL SLAVES",
      .dump_command = "Binlog Dump",
  };
  static constexpr Words kMySql{
      .engine = "MySQL",
      .master_settings = "log_bin, gtid_mode and enforce_gtid_consistency",
      .slave_settings = "log_bin, log_replica_updates, gtid_mode and enforce_gtid_consistency",
      .semi_sync = "rpl_semi_sync_source_enabled",
      .wait_no_slave = "rpl_semi_sync_source_wait_no_replica",
      .wait_timeout = "rpl_semi_sync_source_timeout",
      .wait_point = "rpl_semi_sync_source_wait_point",
      .stop_slave = "STOP REPLICA",
      .forget_master = "STOP REPLICA; RESET REPLICA ALL",
      .start_applying = "START REPLICA SQL_THREAD",
      .stop_channels = "STOP REPLICA FOR CHANNEL 'kvstore_move'",
      .dump_command = "Binlog Dump GTID",
  };
  return engine == Engine::kMariaDb ? kMariaDb : kMySql;
}

const Dialect& DialectOf(const mysql::Connection& connection) {
  // MariaDB alone knows INSERT ... RETURNING.
  return connection.traits().returning ? MariaDbDialect() : MySqlDialect();
}

Rows Dialect::ReadVariables(mysql::Connection& connection, std::string_view own, HostState& state) {
  const uint64_t before = WallClockMs();
  Rows rows = connection.Ask(fmt::format("SELECT {}, {}", kCommonColumns, own));
  rows.Next();
  const uint64_t here = (before + WallClockMs()) / 2;
  state.started_s = rows.Uint(1) / 1000;
  state.clock_ahead_ms = static_cast<int64_t>(rows.Uint(1)) - static_cast<int64_t>(here);
  state.version = rows.Bytes(2);
  state.server_id = rows.Uint(3);
  state.read_only = rows.Uint(4) != 0;
  state.binlog = rows.Uint(5) != 0;
  state.max_packet = rows.Uint(6);
  return rows;
}

void Dialect::ReadStatus(mysql::Connection& connection, std::string_view master, std::string_view slave,
                         HostState& state) {
  const std::string of_master = fmt::format("Rpl_semi_sync_{}_", master);
  const std::string of_slave = fmt::format("Rpl_semi_sync_{}_status", slave);
  Rows rows = connection.Ask(
      fmt::format("SHOW GLOBAL STATUS WHERE Variable_name IN ('{0}status', '{0}clients', '{0}no_tx', '{1}', "
                  "'Threads_connected', 'Uptime')",
                  of_master, of_slave));
  while (rows.Next()) {
    const std::string name = rows.Bytes(1);
    if (name == of_master + "status") state.semi_sync_active = rows.Bytes(2) == "ON";
    if (name == of_master + "clients") state.semi_sync_slaves = std::stoull(rows.Bytes(2));
    if (name == of_master + "no_tx") state.semi_sync_alone = std::stoull(rows.Bytes(2));
    if (name == of_slave) state.semi_sync_slave_active = rows.Bytes(2) == "ON";
    if (name == "Uptime") {
      state.started_s -= std::min<uint64_t>(state.started_s, std::stoull(rows.Bytes(2)));
    }
    if (name == "Threads_connected") state.connections = std::stoull(rows.Bytes(2));
  }
}

std::vector<uint64_t> Dialect::ReadIds(mysql::Connection& connection, const std::string& text) {
  std::vector<uint64_t> ids;
  Rows rows = connection.Ask(text);
  while (rows.Next()) ids.push_back(rows.Uint(1));
  return ids;
}

}  // namespace kvstore::shardops
