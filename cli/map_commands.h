#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Adds kv shards set, history and undo, which change the map that is in force and list earlier ones.
void AddMapCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
