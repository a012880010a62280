#pragma once

#include <chrono>

#include "absl/synchronization/notification.h"
#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv shards` that need operators' rights on the hosts.
void AddFleetCommands(CLI::App& group, Globals& globals);

/// Whether the configuration has an operator's login, if there is one.
bool HasOperator(const Globals& globals);
/// Looks at all hosts and prints problems as they come and go, until `end`. Throws OutputLost.
void WatchHosts(const Globals& globals, std::chrono::seconds interval, const absl::Notification& end);

}  // namespace kvstore::cli
