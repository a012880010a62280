#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/command.h"

namespace kvstore::cli {

/// Does everything that `main` of a program of commands has to do: parses the arguments, executes the
/// command, and returns the exit code.
///
/// name  name of the program in its help.
/// add   adds the options and commands of the program (AddCommands).
int Main(int argc, char** argv, const std::string& name, void (*add)(CLI::App& app, Globals& globals));

}  // namespace kvstore::cli
