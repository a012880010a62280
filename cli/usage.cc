#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/nearest.h"
#include "cli/escape.h"

namespace kvstore::cli {
namespace {

using Words = std::vector<std::string>;

/// Words that other programs use for the same operation; each line is one meaning.
const std::vector<Words>& Synonyms() {
  static const std::vector<Words> synonyms = {
      {"list", "ls", "dir"},
      {"delete", "del", "rm", "remove", "drop", "erase", "destroy"},
      {"put", "set", "add", "insert", "write", "update", "upsert"},
      {"get", "read", "fetch", "cat", "select"},
      {"show", "describe", "info", "get"},
      {"create", "new", "make", "add"},
      {"alter", "change", "modify", "edit", "update", "set"},
      {"scan", "dump", "export", "range", "select"},
      {"import", "load", "restore"},
      {"serve", "server", "daemon", "start", "run"},
      {"stat", "stats", "top", "metrics", "status"},
      {"exec", "execute", "batch", "run"},
      {"migrate", "migration"},
  };
  return synonyms;
}

bool MeanTheSame(std::string_view a, std::string_view b) {
  return std::any_of(Synonyms().begin(), Synonyms().end(), [&](const Words& words) {
    return std::find(words.begin(), words.end(), a) != words.end() &&
           std::find(words.begin(), words.end(), b) != words.end();
  });
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    // A command without a group is hidden from people.
    if (!command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

/// "kv dataset create"
std::string PathOf(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : PathOf(*app.get_parent()) + " " + app.get_name();
}

/// Adds the paths of all commands below `app` whose names `fits` accepts.
template <typename Fits>
void Find(const CLI::App& app, const Fits& fits, Words& paths) {
  for (const CLI::App* command : CommandsOf(app)) {
    if (fits(command->get_name())) paths.push_back(PathOf(*command));
    Find(*command, fits, paths);
  }
}

/// Returns the commands that somebody may have meant by `word` after `app`.
Words Meant(const CLI::App& app, const std::string& word) {
  Words paths;
  const auto add = [&paths](std::string path) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
  };
  Words names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
  Words below;
  Find(
      app, [&](const std::string& name) { return name == word; }, below);
  for (const std::string& name : names) {
    if (MeanTheSame(word, name)) add(PathOf(app) + " " + name);
  }
  for (std::string& path : below) add(std::move(path));
  for (const std::string& name : Nearest(word, names)) add(PathOf(app) + " " + name);
  if (paths.empty()) {
    Find(
        app, [&](const std::string& name) { return MeanTheSame(word, name); }, paths);
  }
  constexpr size_t kMost = 4;
  if (paths.size() > kMost) paths.resize(kMost);
  return paths;
}

std::string UnknownCommand(const CLI::App& app, const std::string& word) {
  const Words meant = word == "help" ? Words{PathOf(app) + " --help"} : Meant(app, word);
  return fmt::format("{}: there is no command '{}'{}", PathOf(app), word, DidYouMean(meant));
}

/// app  the command that was given the option.
std::string UnknownOption(const CLI::App& app, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  Words names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* known : at->get_options()) {
      // The program has its version, a command does not.
      if (at != &app && known == at->get_version_ptr()) continue;
      for (const std::string& name : known->get_lnames()) names.push_back(name);
    }
  }
  Words meant;
  if (option.starts_with("--")) {
    std::sort(names.begin(), names.end());
    // A command and the program may both have it, such as --help.
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : Nearest(option.substr(2), names)) meant.push_back("--" + name);
  }
  const std::string_view dash =
      option.starts_with("--") || app.get_option_no_throw("columns") == nullptr
          ? ""
          : ". A column whose name begins with - stands after --: events -- user:7 -x=1";
  return fmt::format("there is no option {}{}{}", option, DidYouMean(meant), dash);
}

/// "Usage: kv put [OPTIONS] dataset row columns..."
std::string UsageOf(const CLI::App& app) {
  std::string usage = CLI::Formatter().make_usage(&app, PathOf(app));
  while (usage.ends_with('\n')) usage.pop_back();
  return usage;
}

/// `error` is of CLI11's form "NAME is required".
std::string Missing(const CLI::App& app, const std::string& error) {
  const std::string name = error.substr(0, error.find(" is required"));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return fmt::format("{}: {}", PathOf(app), error);
  const std::string about = option->get_description();
  return fmt::format("{}: {} is missing{}{}\n{}", PathOf(app), name, about.empty() ? "" : ": ", about,
                     UsageOf(app));
}

/// Returns the option of a command, or of those above it, that a message of CLI11 names; null if it names
/// none. Some messages begin with the name, in others it comes after words, which differ between the releases
/// of CLI11.
const CLI::Option* OptionIn(const CLI::App& app, const std::string& message) {
  for (const auto word : absl::StrSplit(message, absl::ByAnyChar(" :="))) {
    for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
      if (const CLI::Option* option = at->get_option_no_throw(std::string(word))) return option;
    }
  }
  return nullptr;
}

/// Says in a sentence that an option was given too often, without its value, or with one of another kind.
std::string Mismatch(const CLI::App& app, const CLI::Error& error, CLI::ExitCodes code) {
  const CLI::Option* option = OptionIn(app, error.what());
  if (option == nullptr) return error.what();
  const std::string name = option->get_name();
  if (option->get_expected_max() == 0) return fmt::format("{} takes no value", name);
  if (code == CLI::ExitCodes::ConversionError) {
    return fmt::format("{}: '{}' is not of the kind {}", name, fmt::join(option->results(), " "),
                       option->get_type_name());
  }
  const auto most = static_cast<size_t>(option->get_items_expected_max());
  if (option->count() > most) {
    return most == 1 ? fmt::format("{} was given {} times, and may be given once", name, option->count())
                     : fmt::format("{} takes {} values, and was given {}", name, most, option->count());
  }
  const std::string about = option->get_description();
  return fmt::format("{}: a value is missing{}{}", name, about.empty() ? "" : ": ", about);
}

std::string Explain(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& at = Innermost(app);
  const auto commands = CommandsOf(at);
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code == CLI::ExitCodes::ExtrasError || code == CLI::ExitCodes::RequiredError) {
    const Words unknown = app.remaining(/*recurse=*/true);
    if (!unknown.empty()) {
      const std::string& word = unknown.front();
      if (word.size() > 1 && word.starts_with('-')) {
        return fmt::format("{}: {}", PathOf(at), UnknownOption(at, word));
      }
      if (!commands.empty()) return UnknownCommand(at, word);
      return fmt::format("{}: '{}' was not expected\n{}", PathOf(at), word, UsageOf(at));
    }
    if (!commands.empty() && at.get_require_subcommand_min() > 0) {
      Words names;
      for (const CLI::App* command : commands) names.push_back(command->get_name());
      return fmt::format("{}: name a command: {}", PathOf(at), fmt::join(names, ", "));
    }
    return Missing(at, error.what());
  }
  if (code == CLI::ExitCodes::ArgumentMismatch || code == CLI::ExitCodes::ConversionError) {
    return fmt::format("{}: {}", PathOf(at), Mismatch(at, error, code));
  }
  return fmt::format("{}: {}", PathOf(at), error.what());
}

}  // namespace

const CLI::App& Innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : Innermost(*parsed.back());
}

std::string NoSuchOption(const CLI::App& app, const std::string& word) {
  return UnknownOption(Innermost(app), word);
}

std::string ExplainUsage(const CLI::App& app, const CLI::Error& error) {
  return Printable(fmt::format("{}\n{} --help says more\n", Explain(app, error), PathOf(Innermost(app))),
                   Lines::kMany);
}

}  // namespace kvstore::cli
