#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/commands/bench_commands.h"
#include "cli/commands.h"
#include "migration/record.h"
#include "tests/cli/advice_table.h"
#include "tests/cli/literals.h"

/// Checks that every command that a text of this program names exists: reads all string literals of the
/// sources, and gives what follows "kv " in them to the command line's parser, with values in place of
/// placeholders. tests/shardops/advice_test.cc tests what happens when the advice is obeyed; the table in
/// docs/operators.md says which test is for which advice, and this test compares it with the sources.
namespace kvstore::cli {
namespace {

// ---- the texts ----

/// The text that follows a "kv ".
struct Command {
  std::string file;
  std::string rest;
  bool example =
      false;  ///< The command is to the end of the line as one types it; otherwise it is part of a sentence.
};

std::vector<Command> CommandsOf(const std::string& file, const std::string& text) {
  std::vector<Command> commands;
  for (size_t at = text.find("kv "); at != std::string::npos; at = text.find("kv ", at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (std::string_view(" \n`(").find(before) == std::string_view::npos) continue;
    const std::string rest = text.substr(at + 3);
    if (rest.empty() ||
        (std::islower(static_cast<unsigned char>(rest[0])) == 0 && rest[0] != '-' && rest[0] != '{')) {
      continue;
    }
    const size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const std::string front = text.substr(line, at - line);
    const bool indented =
        (front.size() == 2 || front.size() == 4) && front.find_first_not_of(' ') == std::string::npos;
    const bool typed =
        front.find("Example") != std::string::npos || front.ends_with("' | ") || indented || rest[0] == '-';
    const bool whole = rest.substr(0, rest.find('\n')).find('{') == std::string::npos;
    // Options come first, and the command is not in the source.
    if (rest[0] == '-' && !whole) continue;
    const bool example = typed && whole;
    commands.push_back({file, rest, example});
  }
  return commands;
}

std::vector<Command> CommandsOfTheSources() {
  std::vector<Command> commands;
  for (const SourceText& text : TextsOfTheSources()) {
    for (Command& command : CommandsOf(text.file, text.text)) commands.push_back(std::move(command));
  }
  return commands;
}

// ---- the parser ----

/// The real program's command line, which does nothing.
class Program {
 public:
  Program() {
    AddCommands(app_, globals_);
    Silence(app_);
    bench::AddBenchCommands(bench_, globals_);
    Silence(bench_);
  }
  CLI::App& app() { return app_; }

  /// Returns why the words do not parse; empty if they do.
  std::string WhyNot(const std::vector<std::string>& words, bool mention) {
    // kv passes these on to kv-bench unchanged.
    const bool benches = !words.empty() && words[0] == "bench";
    std::vector<const char*> arguments = {"kv"};
    for (size_t i = benches ? 1 : 0; i < words.size(); ++i) arguments.push_back(words[i].c_str());
    try {
      (benches ? bench_ : app_).parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::Success&) {
    } catch (const CLI::RequiredError& error) {
      if (!mention) return error.what();
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

 private:
  struct Work : CLI::App {
    using CLI::App::final_callback_;
  };

  /// Removes the callbacks of the commands, and keeps them, because they own the variables of the options.
  void Silence(CLI::App& app) {
    work_.push_back(std::exchange(app.*(&Work::final_callback_), nullptr));
    for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; })) {
      Silence(*command);
    }
  }

  Globals globals_;
  std::vector<std::function<void()>> work_;
  CLI::App app_{"", "kv"};
  CLI::App bench_{"", "kv bench"};
};

/// Splits a line as a shell does, up to the end of this command.
std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    const char c = i < line.size() ? line[i] : '\n';
    if (quoted && c != '\n') {
      if (c == '\'') {
        quoted = false;
      } else {
        word += c;
      }
      continue;
    }
    if (c == '\'') {
      quoted = any = true;
      continue;
    }
    if (c != ' ' && c != '\n' && c != ';' && c != '|' && c != '>') {
      if (c == ')' && i + 1 >= line.size()) continue;
      word += c;
      any = true;
      continue;
    }
    if (any) words.push_back(word);
    word.clear();
    any = false;
    // Two spaces precede a remark about the command.
    if (c != ' ' || (i + 1 < line.size() && line[i + 1] == ' ')) break;
  }
  return words;
}

bool IsPlaceholder(const std::string& word) {
  if (word.find('{') != std::string::npos) return true;
  return word.size() > 1 && std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isupper(c) != 0 || c == '_' || c == '-';
         });
}

/// Returns the command of that name directly below another one; null if there is none.
CLI::App* Below(CLI::App& app, const std::string& name) {
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

/// Returns a value for an option, or an argument.
std::string Sample(const std::string& option, const std::string& type = "") {
  if (option == "--range") return "0-7";
  if (option == "--to") return "h1:1,h2:2";
  if (option == "--accept-loss" || option == "--share") return "3";
  if (type.starts_with("UINT") || type.starts_with("FLOAT") || type.starts_with("MS")) return "2000";
  return "h1:1";
}

/// Removes punctuation from the end of a word; returns whether there was any.
bool TakeEnd(std::string& word) {
  const size_t end = word.find_last_not_of(".,;:)`'?");
  if (end + 1 == word.size()) return false;
  word.resize(end + 1);
  return true;
}

struct Sentence {
  std::vector<std::string> words;  ///< For the parser.
  bool mention = true;             ///< Only options follow, no arguments.
  bool dynamic = false;            ///< The name of the command is not in the source.
  std::string problem;
};

/// Finds the command at the beginning of a sentence.
Sentence CommandIn(const std::string& text, CLI::App& app) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      word += c;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  }
  if (!word.empty()) words.push_back(word);

  Sentence sentence;
  CLI::App* at = &app;
  size_t next = 0;
  bool ended = false;
  for (; next < words.size() && !ended; ++next) {
    std::string name = words[next];
    ended = TakeEnd(name);
    if (at != &app && at->get_require_subcommand_min() > 0 && name.starts_with('{')) {
      sentence.dynamic = true;
      return sentence;
    }
    CLI::App* const below = Below(*at, name);
    if (below == nullptr) {
      ended = false;
      break;
    }
    sentence.words.push_back(name);
    at = below;
  }
  // A group alone names that part of the program.
  const bool all = at != &app && next == words.size();
  if (!all && (at == &app || at->get_require_subcommand_min() > 0)) {
    sentence.problem = "there is no command '" + (next < words.size() ? words[next] : std::string()) + "'";
    return sentence;
  }
  const auto positionals =
      at->get_options([](const CLI::Option* option) { return option->get_positional(); }).size();
  size_t given = 0;
  for (; next < words.size() && !ended; ++next) {
    std::string argument = words[next];
    if (argument.starts_with("{}--")) argument.erase(0, 2);
    ended = TakeEnd(argument);
    if (argument.starts_with("--")) {
      sentence.words.push_back(argument);
      const CLI::Option* option = nullptr;
      for (CLI::App* from = at; from != nullptr && option == nullptr; from = from->get_parent()) {
        option = from->get_option_no_throw(argument);
      }
      if (option == nullptr || option->get_items_expected_min() == 0 || ended || next + 1 == words.size())
        continue;
      std::string value = words[++next];
      ended = TakeEnd(value);
      sentence.words.push_back(IsPlaceholder(value) ? Sample(argument, option->get_type_name()) : value);
    } else if (IsPlaceholder(argument) && given < positionals) {
      ++given;
      sentence.words.push_back(Sample(""));
      sentence.mention = false;
    } else if (IsPlaceholder(argument) && at->get_option_no_throw("--range") != nullptr) {
      sentence.words.insert(sentence.words.end(), {"--mod", "--range", Sample("--range")});
      sentence.mention = false;
    } else {
      break;
    }
  }
  return sentence;
}

/// Words that follow "kv" in sentences about the program.
const std::set<std::string>& Prose() {
  static const std::set<std::string> prose = {"elsewhere", "ends", "for", "of", "that"};
  return prose;
}

TEST(Advice, EveryCommandThatATextNamesExists) {
  size_t checked = 0;
  for (const Command& command : CommandsOfTheSources()) {
    SCOPED_TRACE(command.file + ": kv " + command.rest.substr(0, 100));
    if (Prose().contains(command.rest.substr(0, command.rest.find_first_of(" ,.")))) continue;
    Program program;
    if (command.example) {
      EXPECT_EQ(program.WhyNot(Words(command.rest), /*mention=*/false), "");
      ++checked;
      continue;
    }
    const Sentence sentence = CommandIn(command.rest, program.app());
    EXPECT_EQ(sentence.problem, "");
    if (sentence.dynamic || !sentence.problem.empty()) continue;
    EXPECT_EQ(program.WhyNot(sentence.words, sentence.mention), "")
        << ::testing::PrintToString(sentence.words);
    ++checked;
  }
  EXPECT_GT(checked, 100u) << "the sources are not where they were";
}

// ---- the table ----

/// The commands that lose nothing of which a message did not speak: they change nothing, or only what their
/// arguments name.
const std::set<std::string>& Harmless() {
  static const std::set<std::string> harmless = {
      "backup follow",
      "backup list",
      "backup show",
      "backup verify",
      "bench",
      "cache drop",
      "cache status",
      "cache use",
      "changes",
      "compact",
      "completion",
      "config check",
      "consumers list",
      "dataset create",
      "dataset list",
      "dataset show",
      "export",
      "get",
      "import",
      "migrate list",
      "migrate status",
      "migrate watch",
      "object create",
      "object update",
      "operate",
      "operate journal",
      "operate on",
      "operate status",
      "report alter",
      "report list",
      "report load",
      "report query",
      "report rollup",
      "report show",
      "scan",
      "shards check",
      "shards get",
      "shards history",
      "shards move status",
      "shards operations",
      "shards status",
      "shards weight",
      "token",
  };
  return harmless;
}

/// Returns the longest command that the words begin with, "shards move cancel"; empty if there is none.
std::string PathOf(const std::vector<std::string>& words, CLI::App& app) {
  std::string path;
  CLI::App* at = &app;
  for (const std::string& word : words) {
    at = Below(*at, word);
    if (at == nullptr) break;
    path += (path.empty() ? "" : " ") + word;
  }
  return path;
}

/// Returns the commands of a row's first cell. A name without "kv" is a command beside the one before:
/// "`kv migrate resume`, `cancel`".
std::set<std::string> CommandsOfRow(const std::string& cell, CLI::App& app) {
  static const std::regex kQuoted("`([^`]+)`");
  std::set<std::string> commands;
  std::string last;
  for (std::sregex_iterator found(cell.begin(), cell.end(), kQuoted), end; found != end; ++found) {
    std::string text = (*found)[1];
    if (text.starts_with("kv ")) {
      text = text.substr(3);
    } else {
      text = last.substr(0, last.rfind(' ') + 1) + text;
    }
    std::istringstream words(text);
    const std::string path = PathOf({std::istream_iterator<std::string>(words), {}}, app);
    if (path.empty()) continue;
    commands.insert(path);
    last = path;
  }
  return commands;
}

TEST(Advice, EveryCommandThatAMessageProposesIsInTheTableOfTests) {
  Program program;
  std::set<std::string> in_table;
  for (const auto& row : AdviceTable("| proposed command |")) {
    ASSERT_EQ(row.size(), 3u);
    in_table.merge(CommandsOfRow(row[0], program.app()));
  }
  size_t checked = 0;
  for (const Command& command : CommandsOfTheSources()) {
    // Helps name commands, too, and propose none; so do examples.
    if (command.example || command.file.starts_with("bench/")) continue;
    Program parser;
    const Sentence sentence = CommandIn(command.rest, parser.app());
    const std::string path = PathOf(sentence.words, parser.app());
    if (path.empty() || sentence.dynamic) continue;
    EXPECT_TRUE(in_table.contains(path) || Harmless().contains(path))
        << command.file << ": kv " << path
        << ": add it to the table of docs/operators.md, with the test that obeys it";
    ++checked;
  }
  EXPECT_GT(checked, 100u);
}

TEST(Advice, TheTestsOfTheTableExist) { EXPECT_GT(CheckTestsOf(AdviceTable("| proposed command |")), 10u); }

TEST(Advice, EveryCommandThatAMigrationProposesExists) {
  using migration::Phase;
  Program program;
  CLI::App& migrate = *program.app().get_subcommand("migrate");
  const auto exists = [&](const std::string& name) { EXPECT_NE(Below(migrate, name), nullptr) << name; };
  // The commands that Migrator proposes for a side that answers.
  for (const char* const name : {"reverse", "rollback", "cutover", "finish", "cancel"}) exists(name);
  for (int phase = 0; phase <= static_cast<int>(Phase::kAborted); ++phase) {
    for (const bool more : {false, true}) {
      migration::Record record;
      record.phase = static_cast<Phase>(phase);
      record.paused = more;
      record.on_target = more;
      for (const char* const doubt : {"", "both differ"}) {
        record.doubt = doubt;
        record.problem = more ? "a problem" : "";
        Json status = migration::StatusJson(record, std::nullopt);
        for (const auto& command : status["next"]) {
          exists(command.get<std::string>());
        }
      }
    }
  }
}

TEST(Advice, ACommandThatDoesNotExistIsFound) {
  const auto problem = [](const std::string& text) {
    Program program;
    const Sentence sentence = CommandIn(text, program.app());
    return sentence.problem.empty() ? program.WhyNot(sentence.words, sentence.mention) : sentence.problem;
  };
  EXPECT_EQ(problem("shards fence {0}, then"), "");
  EXPECT_EQ(problem("shards promote {} --emergency --accept-loss {}"), "");
  EXPECT_EQ(problem("shards move cancel {}--range {}-{} gives it up"), "");
  EXPECT_NE(problem("shards fance {0}, then"), "");
  EXPECT_NE(problem("shards does it"), "");
  EXPECT_NE(problem("shards fence {0} --emergency"), "");
  EXPECT_NE(problem("shards replace-slave {0} --by"), "");
  EXPECT_NE(problem("repair --force"), "");
  const std::string source =
      "// \"kv none\"\nf(\"a: kv shards \" /* */ , 1'000, '\"', \"kv x\" \" y\" + name + \" z\\n\", R\"(kv "
      "w)\");";
  EXPECT_EQ(Literals(source).texts(), (std::vector<std::string>{"a: kv shards ", "kv x y{} z\n", "kv w"}));
}

}  // namespace
}  // namespace kvstore::cli
