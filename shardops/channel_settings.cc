#include "shardops/channel_settings.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "shardops/gtid.h"
#include "shardops/quoted.h"

namespace kvstore::shardops {

using mysql::Rows;

std::vector<std::string> ReadChannels(mysql::Connection& connection) {
  std::vector<std::string> names;
  Rows rows = connection.Ask("SHOW ALL SLAVES STATUS");
  while (rows.Next()) {
    if (std::string name = rows.Named("Connection_name"); !name.empty()) names.push_back(std::move(name));
  }
  return names;
}

namespace {

/// Sets the host's gtid_slave_pos to the end of its binary log, and what `besides` has beyond that. The host
/// is a master that goes on writing: if its log has grown by the time that the position is set, the server
/// refuses it, and this tries again.
void SetPosition(mysql::Connection& connection, const std::string& besides) {
  constexpr int kOlderThanLog = 1947;
  for (int tries = 20;; --tries) {
    try {
      connection.Run(
          "SET GLOBAL gtid_slave_pos = CONCAT_WS(',', NULLIF(@@GLOBAL.gtid_binlog_pos, ''), NULLIF(" +
          Quoted(besides) + ", ''))");
      return;
    } catch (const sql::SQLException& error) {
      if (error.getErrorCode() != kOlderThanLog || tries == 0) throw;
    }
  }
}

/// How many threads apply what a channel brings. Commits of the source's clients share flushes of the disk; a
/// single applying thread would flush for each transaction, wait for the slave's acknowledgement besides, and
/// never catch up with a busy source. The threads commit in the order of the log, across all domains, because
/// a channel's place is a position in the log and no GTID (master_use_gtid = no).
constexpr int kApplyThreads = 8;

/// Restores the settings that PrepareForChannel changed. Otherwise a server that is made a slave later would
/// skip the events that a later move marks, and apply domains out of order.
void RestoreSettings(mysql::Connection& connection) {
  connection.Run("SET GLOBAL replicate_events_marked_for_skip = REPLICATE");
  // A number of threads from the server's configuration is the operator's choice, and stays.
  Rows ours = connection.Ask(
      fmt::format("SELECT 1 FROM information_schema.system_variables WHERE variable_name = "
                  "'SLAVE_PARALLEL_THREADS' AND global_value_origin = 'SQL' AND global_value = '{}'",
                  kApplyThreads));
  if (ours.Next()) connection.Run("SET GLOBAL slave_parallel_threads = 0");
}

}  // namespace

void PrepareForChannel(mysql::Connection& connection) {
  // The channel must skip the renames of tables that have moved (Freeze).
  connection.Run("SET GLOBAL replicate_events_marked_for_skip = FILTER_ON_SLAVE");
  Rows threads = connection.Ask("SELECT @@slave_parallel_threads");
  if (threads.Next() && threads.Uint(1) == 0) {
    connection.Run(fmt::format("SET GLOBAL slave_parallel_threads = {}", kApplyThreads));
  }
}

void ReconnectChannel(mysql::Connection& connection, const std::string& name) {
  bool runs = false;
  for (Rows rows = connection.Ask("SHOW ALL SLAVES STATUS"); rows.Next();) {
    if (rows.Named("Connection_name") == name) runs = rows.Named("Slave_IO_Running") != "No";
  }
  if (!runs) return;
  connection.Run(fmt::format("STOP SLAVE {} IO_THREAD", Quoted(name)));
  connection.Run(fmt::format("START SLAVE {} IO_THREAD", Quoted(name)));
}

void EndChannel(mysql::Connection& connection, const std::string& name) {
  connection.Run(fmt::format("STOP SLAVE {}", Quoted(name)));
  uint64_t source = 0;
  for (Rows rows = connection.Ask("SHOW ALL SLAVES STATUS"); rows.Next();) {
    if (rows.Named("Connection_name") == name) source = std::stoull(rows.Named("Master_Server_Id"));
  }
  // Transactions of the source that the filter left out no longer count as applied: this host's slaves do not
  // have them, and never will.
  std::string besides;
  if (Rows rows = connection.Ask("SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_pos"); rows.Next()) {
    besides = PositionOfOtherDomains(rows.Bytes(1), rows.Bytes(2), source);
  }
  SetPosition(connection, besides);
  RestoreSettings(connection);
  connection.Run(fmt::format("RESET SLAVE {} ALL", Quoted(name)));
}

}  // namespace kvstore::shardops
