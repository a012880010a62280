#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"

/// kv bench: starts kv-bench, a program of its own, so that kv does not link what only benchmarks need.
namespace kvstore::cli {
namespace {

/// Replaces this process by kv-bench; throws Failure if that cannot be started.
[[noreturn]] void ExecuteBench(std::vector<std::string> arguments) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path program = self.parent_path() / kBenchProgram;
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw Failure{absl::UnavailableError(
      fmt::format("cannot start {}, which measures the store and belongs beside kv: {}", program.string(),
                  std::strerror(errno)))};
}

}  // namespace

void AddBenchCommand(CLI::App& app, Globals& globals) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the store on this machine: see kv bench --help");
  // All that follows the word belongs to kv-bench, --help included.
  bench->prefix_command();
  bench->fallthrough(false);
  bench->set_help_flag();
  globals.server_and_config.insert(bench);
  bench->footer("Example: kv bench rows");
  bench->callback([bench, &globals] {
    std::vector<std::string> arguments = globals.arguments;
    // Leaves out the word `bench`, which stands before the remaining arguments.
    arguments.erase(arguments.end() - static_cast<ptrdiff_t>(bench->remaining_size()) - 1);
    ExecuteBench(std::move(arguments));
  });
}

}  // namespace kvstore::cli
