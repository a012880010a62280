#include "shardops/mysql_replication.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "shardops/quoted.h"

namespace kvstore::shardops {
namespace {

using mysql::Connection;
using mysql::Rows;
using std::chrono::milliseconds;

/// How long the applying threads may take to end once they are told to, and how often that is checked.
constexpr std::chrono::seconds kEndApplying{5};
constexpr milliseconds kEndPoll{20};

}  // namespace

std::string OneLine(std::string set) {
  std::erase(set, '\n');
  return set;
}

void StopReplicating(Connection& connection, const std::string& channel) {
  const std::string for_channel = " FOR CHANNEL " + Quoted(channel);
  connection.Run("STOP REPLICA IO_THREAD" + for_channel);
  uint64_t id = 0;
  {
    Rows rows = connection.Ask(
        fmt::format("SELECT processlist_id FROM performance_schema.threads JOIN "
                    "performance_schema.replication_applier_status_by_coordinator USING (thread_id) WHERE "
                    "channel_name = {0} AND processing_transaction <> '' UNION "
                    // Without workers there is no coordinator.
                    "SELECT processlist_id FROM performance_schema.threads JOIN "
                    "performance_schema.replication_applier_status_by_worker USING (thread_id) WHERE "
                    "channel_name = {0} AND worker_id = 0 AND applying_transaction <> ''",
                    Quoted(channel)));
    if (rows.Next() && !rows.IsNull(1)) id = rows.Uint(1);
  }
  if (id != 0) {
    connection.Run(fmt::format("KILL CONNECTION {}", id));
    const auto deadline = std::chrono::steady_clock::now() + kEndApplying;
    bool applies = true;
    while (applies && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(kEndPoll);
      ForEachChannel(connection, [&](const std::string& name, const Rows& rows) {
        if (name == channel) applies = rows.Named("Replica_SQL_Running") == "Yes";
      });
    }
  }
  connection.Run("STOP REPLICA" + for_channel);
}

void RemoveChannel(Connection& connection, const std::string& channel) {
  StopReplicating(connection, channel);
  connection.Run("RESET REPLICA ALL FOR CHANNEL " + Quoted(channel));
}

}  // namespace kvstore::shardops
