#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "server/resp/commands/command.h"

/// The table of commands, which is made once and never changes: these functions are thread-safe. They compare
/// names without regard to case; the commands and texts that they return live for ever.
namespace kvstore::server::resp {

/// All commands, by name, ascending.
const std::vector<const Command*>& AllCommands();

/// Returns the command of this name; null if there is none.
const Command* FindCommand(std::string_view name);

/// Returns what to use instead of an unsupported command of Redis, as a text. Empty if `name` is not a
/// command that users of Redis would expect here.
std::string_view WhyNotSupported(std::string_view name);

/// Returns the error for a name that FindCommand does not know.
absl::Status UnknownCommandError(std::string_view name);

}  // namespace kvstore::server::resp
