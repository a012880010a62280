#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv shards` that copy data from host to host.
void AddMoveCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
