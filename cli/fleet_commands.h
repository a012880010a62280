#pragma once

#include <chrono>

#include "absl/synchronization/notification.h"
#include "cli/command.h"

namespace kvstore::cli {

/// Adds the commands of `kv shards` that need an operator's rights on the hosts.
void AddFleetCommands(CLI::App& group, Globals& globals);

/// Returns whether there is a configuration and it has an operator's login.
bool HasOperator(const Globals& globals);
/// Inspects all hosts at this interval and prints problems as they appear and disappear, until `end`. Throws
/// OutputLost.
void WatchHosts(const Globals& globals, std::chrono::seconds interval, const absl::Notification& end);

}  // namespace kvstore::cli
