#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/completion_words.h"
#include "cli/standard_output.h"

/// kv completion: prints a script that is made from the commands themselves.
namespace kvstore::cli {
namespace {

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

/// Asks kv-bench, which lies beside this program, for the words of its commands; none if it is not there.
std::optional<CompletionWords> AskBench() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / kBenchProgram).string();
  // The path stands between quotes of the shell.
  if (error || program.find('\'') != std::string::npos) return std::nullopt;
  const std::string command = fmt::format("'{}' {} 2>/dev/null", program, kCompletionWords);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string printed;
  std::array<char, 4096> buffer{};
  for (size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    printed.append(buffer.data(), size);
  }
  const size_t line = printed.find('\n');
  if (::pclose(pipe) != 0 || line == std::string::npos) return std::nullopt;
  return CompletionWords{.paths = printed.substr(0, line), .cases = printed.substr(line + 1)};
}

}  // namespace

void AddCompletionCommand(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes kv's commands in a shell");
  completion->add_option("shell", *shell, "The shell that reads the script")
      ->required()
      ->check(OneOf({"bash", "zsh"}));
  completion->footer(
      "Example, a line for ~/.bashrc (or for ~/.zshrc, with zsh):  source <(kv completion bash)");
  completion->callback([&app, shell] {
    CompletionWords words = ListCompletionWords(app, "kv");
    if (const auto bench = AskBench(); bench) {
      words.paths += bench->paths;
      words.cases += bench->cases;
    }
    if (*shell == "zsh") WriteOut("autoload -U +X bashcompinit && bashcompinit\n");
    WriteOut(fmt::format(kScript, words.paths, words.cases));
  });
}

}  // namespace kvstore::cli
