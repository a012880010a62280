#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shardops/maps.h"
#include "tests/shardops/advice_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/status_matchers.h"

/// In each state in which the program proposes a command, an operator who knows nothing runs what `kv shards
/// status` and `kv shards check` propose, command after command, until they find no problem. Then the fleet
/// must be in order, and every acknowledged write must be there. The commands are taken from what the real
/// program prints. sql_advice_test.cc does the same with statements of SQL.
namespace kvstore::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AdviceTest : public AdviceFixture {
 protected:
  AdviceTest() { MakeDatasets(); }

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
    std::vector<std::string> arguments = WordsOf(commands.front());
    // However slow the disk is.
    if (arguments.at(1) == "move") arguments.emplace_back("--hold-writes");
    Run(arguments);
    EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
    Put();
    ExpectAll();
  }
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
        const Output output = Kv(WordsOf(commands.at(0)));
        EXPECT_EQ(output.code, 0) << output.err;
        steps_.push_back(commands.at(0));
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

TEST_F(AdviceTest, AWriteToAMasterThatTakesNoneIsToldWhy) {
  KvServer server(KV_PROGRAM, {"--config", (dir_ / "kv.json").string()});
  const auto put = [&] {
    return RunProgram(
        {KV_PROGRAM, "--server", server.address(), "--timeout-ms", "2000", "put", "events", "r", "c=v"});
  };
  EXPECT_EQ(put().code, 0);
  Run({"shards", "fence", pair_.Master().ToString()});
  // docs/mysql.md has these texts. On a busy machine the command may now and then give up before the answer
  // arrives.
  EXPECT_TRUE(Eventually([&] {
    const Output refused = put();
    EXPECT_EQ(refused.code, 1);
    return refused.err.find("the host does not take writes, it may have been demoted") != std::string::npos ||
           refused.err.find("the host is read-only") != std::string::npos;
  }));
  Run({"shards", "promote", pair_.Master().ToString()});
  EXPECT_EQ(put().code, 0);
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(AdviceFixture, AboutAMapThatIsWrongWhereNothingIsStored) {
  ServerPair wrong(2);
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  const std::string path = pair_.fleet().root + "/shards/mod";
  const auto put_wrong = [&] {
    const auto node = pair_.fleet().zookeeper.Get(path, /*watch=*/false);
    ASSERT_OK(node);
    ASSERT_OK(pair_.fleet().zookeeper.Set(
        path,
        fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "{}"}}])", PairFleet::kShards - 1,
                    wrong.host_a().ToString(), wrong.host_b().ToString()),
        node->version));
  };
  const auto undo = [&](const Output& said) {
    const std::vector<std::string> commands = CommandsIn(said.err);
    ASSERT_FALSE(commands.empty()) << said.err;
    EXPECT_EQ(commands.front(), "shards undo --mod");
    std::vector<std::string> arguments = WordsOf(commands.front());
    arguments.emplace_back("--yes");
    Run(arguments);
  };
  put_wrong();
  const Output refused = Kv({"shards", "init"});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_EQ(wrong.a().Run("SHOW DATABASES LIKE 'mod%'"), "");
  undo(refused);
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  // Whoever takes the wrong map for right gets back, too: nothing was stored there.
  put_wrong();
  Run({"shards", "init", "--ignore-empty"});
  undo(refused);
  MakeDatasets();
  ExpectAll();
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
  EXPECT_EQ(maps->PairOf(ShardSpace::kMod, 0), pair_.hosts());
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
