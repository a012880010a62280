#pragma once

#include "cli/command.h"

namespace kvstore::bench {

/// Adds `kv bench reports`.
void AddReportsCommand(CLI::App& group, cli::Globals& globals);

}  // namespace kvstore::bench
