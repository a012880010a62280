#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "server/resp/commands/command.h"

namespace kvstore::server::resp {

/// All commands, by name, ascending.
const std::vector<const Command*>& AllCommands();

/// Returns the command of this name, in whatever case; null if there is none.
const Command* FindCommand(std::string_view name);

/// Returns what to do in place of a command of Redis that is not supported; empty for a word that is no
/// command of Redis that somebody would look for here.
std::string_view WhyNotSupported(std::string_view name);

/// Returns the error for a name that FindCommand does not know.
absl::Status UnknownCommandError(std::string_view name);

}  // namespace kvstore::server::resp
