#pragma once

#include <string>

#include "backends/mysql/driver/connection.h"

/// Statements about the replication of a MySQL server, which may replicate from several others: each by a
/// channel with a name. That of its master has none ("").
namespace kvstore::shardops {

/// Calls `visit(name, rows)` for each channel, with its row of SHOW REPLICA STATUS. Throws sql::SQLException,
/// as do all functions here.
template <typename Visit>
void ForEachChannel(mysql::Connection& connection, const Visit& visit) {
  mysql::Rows rows = connection.Ask("SHOW REPLICA STATUS");
  while (rows.Next()) visit(rows.Named("Channel_Name"), rows);
}

/// Returns a set of transactions in one line.
std::string OneLine(std::string set);

/// Stops replicating by a channel. STOP REPLICA alone would wait for a minute for the rest of a transaction
/// of which only a part has arrived, and clients with it if the source is dead. Ending the thread that hands
/// transactions to the applying threads has that part rolled back at once; whatever is not applied has no
/// GTID here yet, and can be got again.
void StopReplicating(mysql::Connection& connection, const std::string& channel);

/// Stops replicating by a channel, and forgets it, with its filter.
void RemoveChannel(mysql::Connection& connection, const std::string& channel);

}  // namespace kvstore::shardops
