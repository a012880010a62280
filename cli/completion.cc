#include <fmt/format.h>

#include "cli/command.h"
#include "cli/standard_output.h"

/// kv completion: a script made from the commands themselves.
namespace kvstore::cli {
namespace {

/// Adds a line for each command below `app`: what may follow the words that lead to it.
void AddCases(const CLI::App& app, const std::string& words, std::string& cases) {
  std::string next;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    next += command->get_name() + " ";
    AddCases(*command, words + " " + command->get_name(), cases);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) next += "--" + name + " ";
  }
  cases += fmt::format("    '{}') words='{}' ;;\n", words, next);
}

constexpr std::string_view kScript = R"(# Completion of kv for bash, and for zsh with bashcompinit.
_kv() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path=kv words= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) continue ;; esac
    case " {} " in *" $path $word;"*) path="$path $word" ;; esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words --data --json --help" -- "$current"))
}}
complete -o default -F _kv kv
)";

/// " kv get; kv dataset; kv dataset create; ...": every path of commands.
void AddPaths(const CLI::App& app, const std::string& words, std::string& paths) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string path = words + " " + command->get_name();
    paths += " " + path + ";";
    AddPaths(*command, path, paths);
  }
}

}  // namespace

void AddCompletionCommand(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes kv's commands in a shell");
  completion->add_option("shell", *shell)->required()->check(CLI::IsMember({"bash", "zsh"}));
  completion->footer(
      "Example, a line for ~/.bashrc (or for ~/.zshrc, with zsh):  source <(kv completion bash)");
  completion->callback([&app, shell] {
    std::string cases;
    std::string paths;
    AddCases(app, "kv", cases);
    AddPaths(app, "kv", paths);
    if (*shell == "zsh") WriteOut("autoload -U +X bashcompinit && bashcompinit\n");
    WriteOut(fmt::format(kScript, paths, cases));
  });
}

}  // namespace kvstore::cli
