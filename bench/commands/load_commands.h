#pragma once

#include "cli/command.h"

namespace kvstore::bench {

/// Adds the commands of `kv bench` that load a store with a mix of calls.
void AddLoadCommands(CLI::App& group, cli::Globals& globals);
void AddChangesCommand(CLI::App& group, cli::Globals& globals);
void AddSteadyCommand(CLI::App& group, cli::Globals& globals);

}  // namespace kvstore::bench
