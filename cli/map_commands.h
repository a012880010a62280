#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// kv shards set, history, undo: which map is in force, and which were.
void AddMapCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
