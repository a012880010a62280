#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Adds the commands of `kv shards` that copy data from host to host.
void AddMoveCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
