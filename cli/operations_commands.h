#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv shards` about what is under way: operations, release.
void AddOperationsCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
