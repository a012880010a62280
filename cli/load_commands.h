#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Those of `kv bench` that put a published mix of calls on a store.
void AddLoadCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
