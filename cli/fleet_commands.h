#pragma once

#include <chrono>

#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv shards` that need operators' rights on the hosts.
void AddFleetCommands(CLI::App& group, Globals& globals);

/// Whether the configuration has an operator's login, if there is one.
bool HasOperator(const Globals& globals);
/// Looks at all hosts for ever, and prints problems as they come and go.
[[noreturn]] void WatchHosts(const Globals& globals, std::chrono::seconds interval);

}  // namespace kvstore::cli
