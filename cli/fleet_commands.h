#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv shards` that need operators' rights on the hosts.
void AddFleetCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
