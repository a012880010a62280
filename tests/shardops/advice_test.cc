#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "shardops/map_history.h"
#include "shardops/maps.h"
#include "tests/shardops/pair.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"

/// In each state in which the program proposes a command, an operator who knows nothing runs what `kv shards
/// status` and `kv shards check` propose, command after command, until they find no problem. Then the fleet
/// must be in order, and every acknowledged write must be there. The commands are taken from what the real
/// program prints.
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AdviceTest : public ::testing::Test {
 protected:
  AdviceTest() {
    pair_.WriteConfig(dir_ / "kv.json");
    EXPECT_OK(shardops::PrepareHistory(pair_.fleet().zookeeper, pair_.fleet().root));
    Run({"shards", "init"});
    Run({"dataset", "create", "events"});
    Run({"dataset", "create", "pins", "--shape", "objects"});
    Put();
  }

  MariaDbServer& Leader() { return pair_.Master() == pair_.host_a() ? pair_.a() : pair_.b(); }
  MariaDbServer& Other() { return pair_.Master() == pair_.host_a() ? pair_.b() : pair_.a(); }

  Output Kv(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {KV_PROGRAM, "--config", (dir_ / "kv.json").string()});
    return RunProgram(arguments, input);
  }
  void Run(const std::vector<std::string>& arguments) const {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 0) << ::testing::PrintToString(arguments) << ": " << output.err;
  }

  /// Writes some rows to each shard, and expects that all are acknowledged.
  void Put() {
    std::string requests;
    for (int i = 0; i < 40; ++i, ++rows_) {
      requests += fmt::format(
          R"({{"op":"put_row","dataset":"events","row":"r{0}","items":[{{"column":"c","value":"{0}"}}]}})"
          "\n",
          rows_);
    }
    const std::string answers = Kv({"exec"}, requests).out;
    EXPECT_EQ(answers.find("\"ok\":false"), std::string::npos) << answers;
  }

  /// Expects that every row that was acknowledged has what was written.
  void ExpectAll() const {
    std::string requests;
    for (int row = 0; row < rows_; ++row) {
      requests += fmt::format(R"({{"op":"get_row","dataset":"events","row":"r{}"}})"
                              "\n",
                              row);
    }
    std::istringstream answers(Kv({"exec"}, requests).out);
    int row = 0;
    for (std::string line; std::getline(answers, line); ++row) {
      EXPECT_NE(line.find(fmt::format("\"value\":\"{}\"", row)), std::string::npos) << line;
    }
    EXPECT_EQ(row, rows_);
  }

  /// Returns what status and check print; empty if they find no problem.
  std::string Inspect() const {
    std::string said;
    for (const char* const command : {"status", "check"}) {
      const Output output = Kv({"shards", command});
      if (output.code != 0) said += output.out + output.err;
    }
    return said;
  }

  /// Returns the commands in a text that change something, as one would type them.
  static std::vector<std::string> CommandsIn(const std::string& text) {
    static const std::regex kCommand(R"(kv (shards (?:fence|promote|replace-slave|init|undo|move(?= --)))"
                                     R"((?: (?:--[a-z][a-z-]*|[0-9](?:[0-9.:,-]*[0-9])?))*))");
    std::vector<std::string> commands;
    for (std::sregex_iterator found(text.begin(), text.end(), kCommand), end; found != end; ++found) {
      commands.push_back((*found)[1]);
    }
    return commands;
  }

  /// Runs what status and check propose until they find no problem.
  void FollowAdvice() {
    std::string said;
    for (int step = 0; step < 12; ++step) {
      // What the last command has answered goes first. If it proposes nothing, status and check are asked
      // until they propose something, or find no problem: some problems disappear by themselves.
      if (CommandsIn(said).empty()) {
        EXPECT_TRUE(Eventually([&] {
          said = Inspect();
          return said.empty() || !CommandsIn(said).empty();
        })) << said;
        if (said.empty()) return;
      }
      const std::vector<std::string> commands = CommandsIn(said);
      ASSERT_FALSE(commands.empty()) << said;
      commands_run_.push_back(commands.front());
      std::istringstream words(commands.front());
      std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      if (arguments.at(1) == "undo") arguments.emplace_back("--yes");
      const Output output = Kv(arguments);
      said = output.out + output.err;
    }
    ADD_FAILURE() << "it goes on and on: " << ::testing::PrintToString(commands_run_) << "\n" << said;
  }

  /// Breaks something and runs what is proposed. Expects that `proposed` is in one of the commands, and that
  /// nothing that was acknowledged is lost.
  void BreakAndFollowAdvice(const std::string& what, const std::function<void()>& breaks,
                            const std::string& proposed) {
    SCOPED_TRACE(what);
    EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
    commands_run_.clear();
    breaks();
    // It takes a moment until the hosts notice.
    EXPECT_TRUE(Eventually([&] { return !CommandsIn(Inspect()).empty(); })) << Inspect();
    FollowAdvice();
    EXPECT_THAT(commands_run_, Contains(HasSubstr(proposed)));
    Put();
    ExpectAll();
  }

  /// Asks for an undo of the last change of a map, which must be refused, and runs what the refusal proposes.
  /// Expects that it is one command that begins so, and that nothing that was acknowledged is lost.
  void UndoAndFollowAdvice(const std::vector<std::string>& undo, const std::string& proposed) {
    SCOPED_TRACE(proposed);
    Put();
    const Output refused = Kv(undo);
    EXPECT_EQ(refused.code, 1) << refused.out;
    EXPECT_THAT(refused.err, Not(HasSubstr("--unchecked")));
    const std::vector<std::string> commands = CommandsIn(refused.err);
    ASSERT_THAT(commands, ElementsAre(StartsWith(proposed))) << refused.err;
    std::istringstream words(commands.front());
    std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
    // However slow the disk is.
    if (arguments.at(1) == "move") arguments.emplace_back("--hold-writes");
    Run(arguments);
    EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
    Put();
    ExpectAll();
  }

  const TempDir dir_;
  PairFleet pair_;
  int rows_ = 0;
  std::vector<std::string> commands_run_;
};

TEST_F(AdviceTest, AboutRolesAndReplication) {
  BreakAndFollowAdvice(
      "a slave takes writes", [this] { Other().Run("SET GLOBAL read_only = OFF"); }, "shards fence");
  BreakAndFollowAdvice(
      "a master does not", [this] { Leader().Run("SET GLOBAL read_only = ON"); }, "shards promote");
  BreakAndFollowAdvice(
      "a slave follows nobody", [this] { Other().Run("STOP SLAVE; RESET SLAVE ALL"); }, "shards promote");
  BreakAndFollowAdvice(
      "a slave follows nobody, takes writes, and has one of its own",
      [this] {
        Other().Run("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF; CREATE DATABASE stray");
      },
      "--discard");
  BreakAndFollowAdvice(
      "a slave does not apply what its master has",
      [this] {
        Other().Run("SET SESSION sql_log_bin = OFF; DROP DATABASE mod00003");
        Put();
      },
      "--discard");
  BreakAndFollowAdvice(
      "the master is gone, and comes back",
      [this] {
        EXPECT_TRUE(Inspect().empty());
        MariaDbServer& gone = Leader();
        gone.Kill();
        EXPECT_THAT(CommandsIn(Inspect()), Contains(HasSubstr("--emergency")));
        const std::vector<std::string> commands = CommandsIn(Inspect());
        std::istringstream words(commands.at(0));
        const Output output = Kv(std::vector<std::string>{std::istream_iterator<std::string>(words), {}});
        EXPECT_EQ(output.code, 0) << output.err;
        commands_run_.push_back(commands.at(0));
        Put();
        gone.Start();
      },
      "--emergency");
}

TEST_F(AdviceTest, AboutWhatIsMissing) {
  BreakAndFollowAdvice(
      "databases and tables of shards without data",
      [this] {
        Leader().Run("DROP DATABASE db00003; DROP TABLE db00005.pins");
        const Output status = Kv({"shards", "status"});
        EXPECT_EQ(status.code, 1);
        EXPECT_THAT(status.out, HasSubstr("database db00003 is missing: kv shards init makes it"));
        EXPECT_THAT(status.out, HasSubstr("kv shards check compares the tables, too"));
      },
      "shards init");
}

TEST_F(AdviceTest, AboutShardsThatAreOpenAlready) {
  const std::vector<std::string> open = {"shards",   "open",
                                         "--range",  "8-9",
                                         "--master", pair_.host_a().ToString(),
                                         "--slave",  pair_.host_b().ToString()};
  Run(open);
  const Output again = Kv(open);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("shards 8-9 are open on " + pair_.host_a().ToString() + " already"));
  EXPECT_THAT(again.out, HasSubstr("nothing was done"));
}

TEST_F(AdviceTest, AboutAnUndoOfWhatMovesAndPromotionsHaveChanged) {
  ServerPair second(2);
  Run({"shards", "move", "--mod", "--range", "0-3", "--to",
       second.host_a().ToString() + "," + second.host_b().ToString(), "--hold-writes"});
  UndoAndFollowAdvice({"shards", "undo", "--mod", "--yes"},
                      fmt::format("shards move --mod --range 0-3 --to {},{}", pair_.host_a().ToString(),
                                  pair_.host_b().ToString()));
  const auto maps = shardops::Maps::Load(pair_.fleet().zookeeper, pair_.fleet().root);
  ASSERT_OK(maps);
  EXPECT_EQ(maps->PairOf(/*mod=*/true, 0), pair_.hosts());
  Run({"shards", "promote", pair_.host_b().ToString()});
  UndoAndFollowAdvice({"shards", "undo", "--yes"}, "shards promote " + pair_.host_a().ToString());
  EXPECT_EQ(pair_.Master(), pair_.host_a());
}

TEST_F(AdviceTest, AboutAMapThatIsWrong) {
  auto& zookeeper = pair_.fleet().zookeeper;
  const std::string path = pair_.fleet().root + "/shards/id";
  BreakAndFollowAdvice(
      "an edit has made the slave the master, in one of the maps",
      [&] {
        const auto node = zookeeper.Get(path, /*watch=*/false);
        ASSERT_OK(node);
        const std::string swapped =
            fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "{}"}}])", PairFleet::kShards - 1,
                        pair_.host_b().ToString(), pair_.host_a().ToString());
        ASSERT_OK(zookeeper.Set(path, swapped, node->version));
        EXPECT_THAT(CommandsIn(Inspect()), Not(Contains(HasSubstr("fence")))) << "nor is it made worse";
      },
      "shards undo");
}

}  // namespace
}  // namespace kvstore::testing
