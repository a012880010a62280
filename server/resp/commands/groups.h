#pragma once

#include <span>

#include "server/resp/commands/command.h"

/// The tables of commands, by group.
namespace kvstore::server::resp {

std::span<const Command> ConnectionCommands();
std::span<const Command> ServerCommands();
std::span<const Command> KeyCommands();
std::span<const Command> ScanCommands();
std::span<const Command> HashCommands();
std::span<const Command> StringCommands();
std::span<const Command> CounterCommands();
std::span<const Command> StreamCommands();
std::span<const Command> SortedSetCommands();
std::span<const Command> JsonCommands();
std::span<const Command> StoreCommands();

}  // namespace kvstore::server::resp
