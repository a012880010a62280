#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvstore::cli {

/// The paths of a program's commands and the words after each, for a completion script.
struct CompletionWords {
  /// Every path of commands, each with a space before it and a semicolon after it:
  /// " kv get; kv dataset; kv dataset create;".
  std::string paths;
  /// A branch of a `case` of the shell for each path, which sets the words that may follow that path.
  std::string cases;
};

/// Lists the commands below `app`, whose own path is `path` ("kv", "kv bench"). Commands that belong to no
/// group of the help, and commands that start another program, are left out.
CompletionWords ListCompletionWords(const CLI::App& app, const std::string& path);

/// The hidden command with which `kv completion` asks kv-bench for its words: it prints the paths as the
/// first line, and the cases after it.
inline constexpr char kCompletionWords[] = "completion-words";
void AddCompletionWordsCommand(CLI::App& app, const std::string& path);

}  // namespace kvstore::cli
