#pragma once

#include "cli/command.h"

namespace kvstore::bench {

/// Adds the options and commands of kv-bench. `globals` must outlive the app.
void AddBenchCommands(CLI::App& app, cli::Globals& globals);

}  // namespace kvstore::bench
