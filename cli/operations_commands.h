#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Adds the commands of `kv shards` about operations in progress: operations, release.
void AddOperationsCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
