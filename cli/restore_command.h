#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Adds kv backup restore.
void AddRestoreCommand(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
