#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "coordination/zookeeper.h"
#include "shardmap/shard_map.h"
#include "tests/cli/kv_program.h"
#include "tests/shardmap/large_maps.h"
#include "tests/support/kv_server.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

constexpr char kMap[] = R"([{"range": [0, 511], "master": "A", "slave": "B"}])";
/// The message of set and undo where the configuration has no operator's login.
constexpr char kNotAsked[] =
    "no host was asked whether it has these shards: kv shards check compares the hosts with the maps\n";
constexpr char kMoved[] =
    R"([{"range": [0, 255], "master": "A", "slave": "B"}, {"range": [256, 511], "master": "C", "slave": "D"}])";

class KvShards : public KvProgram {
 protected:
  std::string Shards(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "shards");
    arguments.insert(arguments.end(), {"--zookeeper", server_.address()});
    return Ok(arguments);
  }
  /// Runs the same; expects exit code 1, and returns what it prints on standard output and standard error.
  Output Refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "shards");
    arguments.insert(arguments.end(), {"--zookeeper", server_.address()});
    Output output = Kv(arguments);
    EXPECT_EQ(output.code, 1) << output.out;
    return output;
  }
  ZooKeeperServer server_;
};

TEST_F(KvShards, AMapIsCheckedPutInForceAndRead) {
  const std::string map = File("map.json", kMap);
  const std::string moved = File("moved.json", kMoved);
  EXPECT_EQ(Ok({"shards", "validate", map}), "a good map: 1 entries, 512 shards open\n");
  Fails({"shards", "get", "--zookeeper", server_.address()}, "NOT_FOUND");
  Fails({"shards", "set", map, "--zookeeper", server_.address()}, "say --yes");
  EXPECT_EQ(Shards({"set", map, "--yes"}), std::string("/kvstore/shards/id made\n") + kNotAsked);
  EXPECT_EQ(Shards({"get"}), std::string(kMap) + "\n");
  EXPECT_EQ(Shards({"diff", map}), "no change\n");
  const std::string change = "shards 256..511: moved from A (slave B) to C (slave D)\n";
  EXPECT_EQ(Shards({"diff", moved}), change);
  EXPECT_EQ(Shards({"set", moved, "--yes", "--unchecked"}), change + kNotAsked);
  EXPECT_EQ(Shards({"set", moved, "--yes"}), "no change\n") << "nobody needs to be asked";
  const Json json = Json::parse(Shards({"diff", map, "--json"}));
  EXPECT_EQ(json["changes"][0]["range"], Json({256, 511}));
  EXPECT_EQ(json["changes"][0]["after"]["master"], "A");
}

TEST_F(KvShards, AServerTellsTheSameAsZooKeeper) {
  const std::string config = File(
      "kv.json",
      Json{{"data", (dir_ / "served").string()}, {"zookeeper", {{"servers", server_.address()}}}}.dump());
  const KvServer served(KV_PROGRAM, {"--config", config});
  const auto through = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {KV_PROGRAM, "--server", served.address(), "shards"});
    return RunProgram(arguments);
  };
  const Output none = through({"get"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, ::testing::HasSubstr("there is no map yet"));
  const std::string moved = File("moved.json", kMoved);
  Shards({"set", File("map.json", kMap), "--yes"});
  Shards({"set", moved, "--yes", "--unchecked"});
  const std::string kept = Json::parse(Shards({"history", "--json"}))["maps"][1]["kept"];
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"get"},
                                             {"diff", moved},
                                             {"diff", File("map.json", kMap)},
                                             {"diff", moved, "--json"},
                                             {"history"},
                                             {"history", "--json"},
                                             {"history", "--show", kept}}) {
    SCOPED_TRACE(command[0]);
    const Output output = through(command);
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_EQ(output.out, Shards(command));
  }
  EXPECT_THAT(through({"history", "--show", "none"}).err, ::testing::HasSubstr("no map 'none' is kept"));
  EXPECT_THAT(through({"get", "--mod"}).err,
              ::testing::HasSubstr("kv shards set --mod FILE makes it the map"));
  const Output both = through({"get", "--zookeeper", server_.address()});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, ::testing::HasSubstr("--server: not together with --zookeeper"));
  // A password of ZooKeeper is for nobody but ZooKeeper.
  const Output password = through({"set", moved, "--auth", "ann:secret"});
  EXPECT_EQ(password.code, 2);
  EXPECT_THAT(password.err, ::testing::HasSubstr("--server: not together with --auth"));
  // This server has no list of callers, so it lets nobody operate.
  const Output refused = through({"weight"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, ::testing::HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(refused.err, ::testing::HasSubstr("server.tokens"));
}

TEST_F(KvShards, AMapOfFullSizeIsEditedAsATextLikeAnyOther) {
  const std::string text = FullSizeMap().ToJson();
  const std::string map = File("map.json", text);
  EXPECT_EQ(Ok({"shards", "validate", map}), "a good map: 65536 entries, 65536 shards open\n");
  Shards({"set", File("small.json", kMap), "--yes"});
  const std::string told = Shards({"set", map, "--yes", "--unchecked"});
  EXPECT_THAT(told, ::testing::HasSubstr("stored in the compact form, which programs older than KVStore"));
  // The node of ZooKeeper has the compact form, and people see the text.
  ZooKeeper zookeeper({.servers = server_.address()}, nullptr);
  const auto node = zookeeper.Get("/kvstore/shards/id", /*watch=*/false);
  ASSERT_TRUE(node.ok());
  EXPECT_TRUE(ShardMap::IsCompact(node->data));
  EXPECT_TRUE(Shards({"get"}) == text);
  EXPECT_EQ(Shards({"diff", map}), "no change\n");
  const std::string other = File("other.json", FullSizeMap(1'000, 1).ToJson());
  EXPECT_THAT(Shards({"set", other, "--yes", "--unchecked"}),
              ::testing::Not(::testing::HasSubstr("compact")));
  // A server tells the same.
  const std::string config = File(
      "kv.json",
      Json{{"data", (dir_ / "served").string()}, {"zookeeper", {{"servers", server_.address()}}}}.dump());
  const KvServer served(KV_PROGRAM, {"--config", config});
  const Output got = RunProgram({KV_PROGRAM, "--server", served.address(), "shards", "get"});
  EXPECT_EQ(got.err, "");
  EXPECT_TRUE(got.out == Shards({"get"}));
  const Output kept = RunProgram({KV_PROGRAM, "--server", served.address(), "shards", "history", "--json"});
  EXPECT_EQ(kept.err, "");
  EXPECT_TRUE(kept.out == Shards({"history", "--json"}));
  // All of them are in the history, and undo goes back.
  const Json history = Json::parse(Shards({"history", "--json"}));
  ASSERT_EQ(history["maps"].size(), 3u);
  EXPECT_EQ(history["maps"][1]["map"].size(), 65'536u);
  Shards({"undo", "--yes", "--unchecked"});
  EXPECT_TRUE(Shards({"get"}) == text);
  Shards({"undo", "--to", history["maps"][2]["kept"], "--yes", "--unchecked"});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
}

TEST_F(KvShards, ADryRunOfAnEditSaysWhatWouldChangeAndChangesNothing) {
  const std::string map = File("map.json", kMap);
  EXPECT_EQ(Shards({"set", map, "--dry-run"}), std::string("/kvstore/shards/id would be made\n") + kNotAsked);
  EXPECT_THAT(Refused({"get"}).err, ::testing::HasSubstr("there is no map yet"));
  Shards({"set", map, "--yes"});
  const std::string moved = File("moved.json", kMoved);
  EXPECT_THAT(Refused({"set", moved, "--dry-run"}).err, ::testing::HasSubstr("no host was asked"));
  const std::string change = "shards 256..511: moved from A (slave B) to C (slave D)\n";
  EXPECT_EQ(Shards({"set", moved, "--dry-run", "--unchecked"}), change + kNotAsked);
  EXPECT_EQ(Json::parse(Shards({"set", moved, "--dry-run", "--unchecked", "--json"}))["changes"],
            Json::parse(Shards({"diff", moved, "--json"}))["changes"]);
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  EXPECT_EQ(Json::parse(Shards({"history", "--json"}))["maps"].size(), 1u);
}

TEST_F(KvShards, AChangeThatNoHostWasAskedAboutIsRefused) {
  Shards({"set", File("map.json", kMap), "--yes"});
  const std::string moved = File("moved.json", kMoved);
  const Output refused = Refused({"set", moved, "--yes"});
  EXPECT_THAT(refused.err, ::testing::HasSubstr("no host was asked"));
  EXPECT_THAT(refused.err, ::testing::HasSubstr("mysql.operator"));
  EXPECT_THAT(refused.err,
              ::testing::HasSubstr("--unchecked puts the map in force without asking; the risk"));
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  const Json answer = Json::parse(Shards({"set", moved, "--yes", "--unchecked", "--json"}));
  EXPECT_EQ(answer["hosts_asked"], false);
  EXPECT_EQ(answer["changes"].size(), 1u);
  EXPECT_THAT(Refused({"undo", "--yes"}).err, ::testing::HasSubstr("no host was asked"));
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMoved));
}

TEST_F(KvShards, AMapThatIsDamagedIsReplacedOnlyIfTheHostsWereAsked) {
  ZooKeeper zookeeper({.servers = server_.address()}, nullptr);
  ASSERT_TRUE(zookeeper.Create("/kvstore/shards/id", "{").ok());
  const std::string map = File("map.json", kMap);
  EXPECT_THAT(Refused({"set", map, "--yes"}).err, ::testing::HasSubstr("no host was asked"));
  EXPECT_EQ(Shards({"set", map, "--yes", "--unchecked"}), kNotAsked);
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
}

TEST_F(KvShards, WithoutAMapItIsSaidHowToBegin) {
  for (const char* const command : {"get", "diff", "undo"}) {
    std::vector<std::string> words = {command};
    if (words.front() == "diff") words.push_back(File("map.json", kMap));
    const std::string said = Refused(words).err;
    EXPECT_THAT(said, ::testing::HasSubstr("NOT_FOUND")) << command;
    EXPECT_THAT(said, ::testing::HasSubstr("there is no map yet")) << command;
    EXPECT_THAT(said, ::testing::HasSubstr("kv shards set FILE")) << command;
    EXPECT_THAT(said, ::testing::HasSubstr("kv shards init")) << command;
  }
}

TEST_F(KvShards, ARangeThatCannotBeNamesItsLimit) {
  EXPECT_THAT(Refused({"weight", "--range", "3-0", "0"}).err, ::testing::HasSubstr("3-0 is reversed"));
  EXPECT_THAT(Refused({"weight", "--range", "0-65536", "0"}).err,
              ::testing::HasSubstr("0-65536 goes beyond 65535, the last shard"));
}

TEST_F(KvShards, AKeptMapThatCannotBeReadHidesNoOther) {
  Shards({"set", File("map.json", kMap), "--yes"});
  Shards({"set", File("moved.json", kMoved), "--yes", "--unchecked"});
  const Json before = Json::parse(Shards({"history", "--json"}));
  const std::string first = before["maps"].back()["kept"];
  ASSERT_EQ(before["maps"].back()["map"], Json::parse(kMap));
  // Its name sorts after the others, so that it is the newest.
  const std::string damaged = "9999999999999-0badf00d";
  ZooKeeper zookeeper({.servers = server_.address()}, nullptr);
  ASSERT_TRUE(zookeeper.Create("/kvstore/history/id/" + damaged, "{").ok());
  const std::string unreadable = "the map kept as " + damaged + " cannot be read";

  const Output history = Refused({"history"});
  EXPECT_THAT(history.out, ::testing::HasSubstr("cannot be read"));
  EXPECT_THAT(history.out, ::testing::HasSubstr(first)) << "the others are listed";
  EXPECT_THAT(history.err, ::testing::HasSubstr("DATA_LOSS"));
  EXPECT_THAT(history.err, ::testing::HasSubstr(unreadable));
  const Json json = Json::parse(Refused({"history", "--json"}).out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["maps"].size(), before["maps"].size() + 1);
  EXPECT_EQ(json["maps"].front()["kept"], damaged);
  EXPECT_TRUE(json["maps"].front()["map"].is_null());
  EXPECT_THAT(Refused({"history", "--show", damaged}).err, ::testing::HasSubstr(unreadable));
  EXPECT_EQ(Json::parse(Shards({"history", "--show", first})), Json::parse(kMap));

  const std::string undo = Refused({"undo", "--yes", "--unchecked"}).err;
  EXPECT_THAT(undo, ::testing::HasSubstr(unreadable));
  EXPECT_THAT(undo, ::testing::HasSubstr("kv shards undo --to KEPT takes another"));
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMoved)) << "nothing was changed";
  Shards({"undo", "--yes", "--unchecked", "--to", first});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
}

TEST_F(KvShards, AnEditThatWasWrongIsUndone) {
  Shards({"set", File("map.json", kMap), "--yes"});
  Shards({"set", File("moved.json", kMoved), "--yes", "--unchecked"});
  const Json history = Json::parse(Shards({"history", "--json"}));
  ASSERT_EQ(history["maps"].size(), 2u);
  EXPECT_EQ(history["maps"][1]["map"], Json::parse(kMap));
  const std::string first = history["maps"][1]["kept"];
  EXPECT_THAT(Shards({"history"}),
              ::testing::HasSubstr("shards 256..511: moved from A (slave B) to C (slave D)"));
  EXPECT_EQ(Json::parse(Shards({"history", "--show", first})), Json::parse(kMap));
  Shards({"undo", "--yes", "--unchecked"});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  Shards({"undo", "--yes", "--unchecked"});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMoved)) << "and forth again";
  Shards({"undo", "--yes", "--unchecked", "--to", first});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  Fails({"shards", "undo", "--to", "none", "--yes", "--zookeeper", server_.address()},
        "no map 'none' is kept");
}

TEST_F(KvShards, TheHistoryBeginsWithTheFirstMapAndNamesWhoMadeIt) {
  Shards({"set", File("map.json", kMap), "--yes"});
  const Json first = Json::parse(Shards({"history", "--json"}))["maps"];
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["map"], Json::parse(kMap));
  EXPECT_THAT(first[0].value("who", ""), ::testing::HasSubstr(", process "));
  // Another process changes the map.
  Shards({"set", File("moved.json", kMoved), "--yes", "--unchecked"});
  const Json both = Json::parse(Shards({"history", "--json"}))["maps"];
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1], first[0]) << "is still the first process' map";
  EXPECT_NE(both[0]["who"], first[0]["who"]);
}

TEST_F(KvShards, AMapThatAnotherProgramMadeIsNotTheWorkOfWhoFoundIt) {
  ZooKeeper zookeeper({.servers = server_.address()}, nullptr);
  ASSERT_TRUE(zookeeper.Create("/kvstore/shards/id", kMap).ok());
  const auto node = zookeeper.Get("/kvstore/shards/id", /*watch=*/false);
  ASSERT_TRUE(node.ok());
  Shards({"set", File("moved.json", kMoved), "--yes", "--unchecked"});
  const Json history = Json::parse(Shards({"history", "--json"}))["maps"];
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[1]["map"], Json::parse(kMap));
  EXPECT_THAT(history[1].value("who", ""), ::testing::StartsWith("not known; saved by "));
  EXPECT_EQ(history[1].value("at_ms", uint64_t{0}), node->changed_ms) << "is when it was put in force";
}

TEST_F(KvShards, MapsThatWouldDisagreeAreRefused) {
  Shards({"set", File("map.json", kMap), "--yes"});
  const std::string swapped = File("mod.json", R"([{"range": [0, 15], "master": "B", "slave": "A"}])");
  Fails({"shards", "set", swapped, "--mod", "--yes", "--zookeeper", server_.address()}, "in 2 pairs");
  Fails({"shards", "get", "--mod", "--zookeeper", server_.address()}, "NOT_FOUND");
  Shards({"set", swapped, "--mod", "--yes", "--unchecked"});
}

TEST_F(KvShards, ABadMapIsRefusedAndNothingIsWritten) {
  const std::string bad = File("bad.json", R"([{"range": [511, 0], "master": "A", "slave": "B"}])");
  Fails({"shards", "validate", bad}, "entry 0: range: [511, 0] is reversed");
  Shards({"set", File("map.json", kMap), "--yes"});
  Fails({"shards", "set", bad, "--yes", "--zookeeper", server_.address()}, "is reversed");
  EXPECT_EQ(Shards({"get"}), std::string(kMap) + "\n");
}

TEST_F(KvShards, TheNumberOfModShardsIsForEver) {
  Shards({"set", File("mod.json", R"([{"range": [0, 15], "master": "A", "slave": "B"}])"), "--mod", "--yes"});
  Fails({"shards", "set", File("more.json", R"([{"range": [0, 31], "master": "A", "slave": "B"}])"), "--mod",
         "--yes", "--zookeeper", server_.address()},
        "32 shards where there are 16");
  Fails({"shards", "validate", "--mod",
         File("gap.json", R"([{"range": [1, 15], "master": "A", "slave": "B"}])")},
        "shards 0 to 0 are missing");
}

TEST_F(KvShards, WatchPrintsWhatComesIntoForce) {
  Shards({"set", File("map.json", kMap), "--yes"});
  const std::string printed = (dir_ / "printed").string();
  const pid_t watch = ForkProgram({KV_PROGRAM, "shards", "watch", "--zookeeper", server_.address()}, printed);
  const auto wait_for = [&](const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::string seen;
    while (seen.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      std::ifstream file(printed);
      seen.assign((std::istreambuf_iterator<char>(file)), {});
    }
    EXPECT_NE(seen.find(text), std::string::npos) << seen;
  };
  wait_for("1 entries, 512 shards open\n");
  Shards({"set", File("moved.json", kMoved), "--yes", "--unchecked"});
  wait_for("shards 256..511: moved from A (slave B) to C (slave D)\n");
  Kill(watch);
}

TEST_F(KvShards, WatchEndsWhenItsReaderHasSeenEnough) {
  Shards({"set", File("map.json", kMap), "--yes"});
  // No other map comes into force, so only the reader's end can end the command.
  const Output output = RunProgram(
      {"/bin/bash", "-c",
       "set -o pipefail; \"$0\" shards watch --zookeeper " + server_.address() + " | head -1", KV_PROGRAM});
  EXPECT_EQ(output.out, "1 entries, 512 shards open\n");
  EXPECT_EQ(output.code, 128 + SIGPIPE) << output.err;
}

}  // namespace
}  // namespace kvstore::testing
