#include "cli/completion_words.h"

#include <fmt/format.h>

#include "cli/standard_output.h"

namespace kvstore::cli {
namespace {

void AddWords(const CLI::App& app, const std::string& path, CompletionWords& words) {
  std::string next;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    next += command->get_name() + " ";
    const std::string below = path + " " + command->get_name();
    words.paths += " " + below + ";";
    if (!command->get_prefix_command()) AddWords(*command, below, words);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) next += "--" + name + " ";
  }
  words.cases += fmt::format("    '{}') words='{}' ;;\n", path, next);
}

}  // namespace

CompletionWords ListCompletionWords(const CLI::App& app, const std::string& path) {
  CompletionWords words;
  AddWords(app, path, words);
  return words;
}

void AddCompletionWordsCommand(CLI::App& app, const std::string& path) {
  app.add_subcommand(kCompletionWords, "The words of the commands, for kv completion")
      ->group("")
      ->callback([&app, path] {
        const CompletionWords words = ListCompletionWords(app, path);
        WriteOut(words.paths + "\n" + words.cases);
      });
}

}  // namespace kvstore::cli
