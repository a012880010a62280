#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/commands/bench_commands.h"
#include "cli/commands.h"
#include "cli/usage.h"

/// Tests of what must hold for each argument and option of all commands of kv and kv-bench.
namespace kvstore::cli {
namespace {

using WordList = std::vector<std::string>;

/// A program with all of its commands, none of which is executed.
class WholeProgram {
 public:
  WholeProgram(const std::string& name, void (*add)(CLI::App&, Globals&)) : app_("", name) {
    add(app_, globals_);
  }

  /// Calls `visit` for each command, with the words that lead to it.
  void Walk(const std::function<void(const CLI::App&, const WordList&)>& visit) { Walk(app_, {}, visit); }

  /// Returns what is printed about a command line that is wrong at its end, if nothing before is wrong.
  std::string Explain(WordList words) {
    words.emplace_back("--no-such-option");
    std::reverse(words.begin(), words.end());
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return ExplainUsage(app_, error);
    }
    return "it was executed";
  }

 private:
  static void Walk(const CLI::App& app, const WordList& path,
                   const std::function<void(const CLI::App&, const WordList&)>& visit) {
    visit(app, path);
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      WordList below = path;
      below.push_back(command->get_name());
      Walk(*command, below, visit);
    }
  }

  Globals globals_;
  CLI::App app_;
};

void WalkAll(const std::function<void(WholeProgram&, const CLI::App&, const WordList&)>& visit) {
  WholeProgram kv("kv", &AddCommands);
  kv.Walk([&](const CLI::App& app, const WordList& path) { visit(kv, app, path); });
  WholeProgram bench("kv bench", &bench::AddBenchCommands);
  bench.Walk([&](const CLI::App& app, const WordList& path) { visit(bench, app, path); });
}

std::string PathText(const WordList& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

TEST(Arguments, EachHasADescription) {
  size_t all = 0;
  WalkAll([&](WholeProgram&, const CLI::App& app, const WordList& path) {
    for (const CLI::Option* option : app.get_options()) {
      EXPECT_NE(option->get_description(), "") << PathText(path) << option->get_name();
      ++all;
    }
  });
  EXPECT_GT(all, 400u);
}

TEST(Arguments, FootersFitIntoALineAndSayTheExitCodes) {
  WalkAll([](WholeProgram&, const CLI::App& app, const WordList& path) {
    EXPECT_NE(app.get_footer().find("Exit codes:"), std::string::npos) << PathText(path);
    std::istringstream lines(app.get_footer());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << PathText(path) << line;
  });
}

TEST(Arguments, AnEmptyTextIsRefusedWhereItMeansNothing) {
  const std::set<std::string> means_something = {"--after",  "--columns", "--end-row",  "--if-absent",
                                                 "--ignore", "--marker",  "--start-row"};
  std::set<std::string> accepted;
  WalkAll([&](WholeProgram& program, const CLI::App& app, const WordList& path) {
    for (const CLI::Option* option : app.get_options()) {
      // A hidden option has no name that the library tells.
      if (option->get_expected_max() == 0 || option->get_lnames().empty() || option->get_name().empty())
        continue;
      WordList words = path;
      words.push_back(option->get_name());
      words.insert(words.end(), static_cast<size_t>(std::max(1, option->get_items_expected_min())), "");
      const std::string told = program.Explain(words);
      if (told.find(option->get_name() + ": must not be empty") == std::string::npos) {
        accepted.insert(option->get_name());
        EXPECT_TRUE(means_something.contains(option->get_name())) << PathText(path) << told;
      }
    }
  });
  EXPECT_EQ(accepted, means_something);
}

TEST(Arguments, ANumberBeyondItsVariableIsToldItsLimit) {
  size_t all = 0;
  WalkAll([&](WholeProgram& program, const CLI::App& app, const WordList& path) {
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_type_name().starts_with("UINT") || option->get_lnames().empty()) continue;
      WordList words = path;
      words.insert(words.end(), {option->get_name(), "4294967296"});
      const std::string told = program.Explain(words);
      EXPECT_EQ(told.find("is not of the kind"), std::string::npos) << PathText(path) << told;
      ++all;
    }
  });
  EXPECT_GT(all, 20u);
}

TEST(Arguments, AWordIsOneOfThoseListed) {
  CLI::App app;
  std::string shape;
  CLI::Option* option = app.add_option("--shape", shape, "What it holds")->check(OneOf({"rows", "objects"}));
  EXPECT_EQ(option->get_type_name(), "TEXT:{rows,objects}");
  app.parse("--shape objects");
  EXPECT_EQ(shape, "objects");
  try {
    app.parse("--shape row");
    ADD_FAILURE() << "it was accepted";
  } catch (const CLI::ValidationError& error) {
    EXPECT_STREQ(error.what(), "--shape: 'row' is not one of rows, objects");
  }
}

}  // namespace
}  // namespace kvstore::cli
