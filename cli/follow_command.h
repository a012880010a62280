#pragma once

#include "cli/command.h"

namespace kvstore::cli {

/// Adds kv backup follow.
void AddFollowCommand(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
