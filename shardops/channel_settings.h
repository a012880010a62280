#pragma once

#include <string>
#include <vector>

#include "backends/mysql/driver/connection.h"

/// The channels of a host (channel.h) as statements see them: their names, and the settings of the server
/// that they need.
namespace kvstore::shardops {

/// Returns the names of the channels (channel.h) of a host. All functions here throw sql::SQLException.
std::vector<std::string> ReadChannels(mysql::Connection& connection);
/// Changes the server's settings for a channel that exists but has not started. They affect all other
/// replication of the host too, until EndChannel restores them.
void PrepareForChannel(mysql::Connection& connection);
/// Has a running channel connect to its source anew. A connection stays semi-synchronous, or not, as the host
/// was set when it was made. That of a channel must not be: its source would acknowledge commits that only
/// this host has, and that the source's own slave lacks.
void ReconnectChannel(mysql::Connection& connection, const std::string& name);
/// Removes a channel. The host must not replicate anything else at that moment.
void EndChannel(mysql::Connection& connection, const std::string& name);

}  // namespace kvstore::shardops
