#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/kv_program.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

constexpr char kMap[] = R"([{"range": [0, 511], "master": "A", "slave": "B"}])";
constexpr char kMoved[] =
    R"([{"range": [0, 255], "master": "A", "slave": "B"}, {"range": [256, 511], "master": "C", "slave": "D"}])";

class KvShards : public KvProgram {
 protected:
  std::string Shards(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "shards");
    arguments.insert(arguments.end(), {"--zookeeper", server_.address()});
    return Ok(arguments);
  }
  ZooKeeperServer server_;
};

TEST_F(KvShards, AMapIsCheckedPutInForceAndRead) {
  const std::string map = File("map.json", kMap);
  const std::string moved = File("moved.json", kMoved);
  EXPECT_EQ(Ok({"shards", "validate", map}), "a good map: 1 entries, 512 shards open\n");
  Fails({"shards", "get", "--zookeeper", server_.address()}, "NOT_FOUND");
  Fails({"shards", "set", map, "--zookeeper", server_.address()}, "say --yes");
  EXPECT_EQ(Shards({"set", map, "--yes"}), "/kvstore/shards/id made\n");
  EXPECT_EQ(Shards({"get"}), std::string(kMap) + "\n");
  EXPECT_EQ(Shards({"diff", map}), "no change\n");
  const std::string change = "shards 256..511: moved from A (slave B) to C (slave D)\n";
  EXPECT_EQ(Shards({"diff", moved}), change);
  EXPECT_EQ(Shards({"set", moved, "--yes"}), change);
  const Json json = Json::parse(Shards({"diff", map, "--json"}));
  EXPECT_EQ(json["changes"][0]["range"], Json({256, 511}));
  EXPECT_EQ(json["changes"][0]["after"]["master"], "A");
}

TEST_F(KvShards, AnEditThatWasWrongIsUndone) {
  Shards({"set", File("map.json", kMap), "--yes"});
  Shards({"set", File("moved.json", kMoved), "--yes"});
  const Json history = Json::parse(Shards({"history", "--json"}));
  ASSERT_EQ(history["maps"].size(), 2u);
  EXPECT_EQ(history["maps"][1]["map"], Json::parse(kMap));
  const std::string first = history["maps"][1]["kept"];
  EXPECT_THAT(Shards({"history"}),
              ::testing::HasSubstr("shards 256..511: moved from A (slave B) to C (slave D)"));
  EXPECT_EQ(Json::parse(Shards({"history", "--show", first})), Json::parse(kMap));
  Shards({"undo", "--yes"});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  Shards({"undo", "--yes"});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMoved)) << "and forth again";
  Shards({"undo", "--yes", "--to", first});
  EXPECT_EQ(Json::parse(Shards({"get"})), Json::parse(kMap));
  Fails({"shards", "undo", "--to", "none", "--yes", "--zookeeper", server_.address()},
        "no map 'none' is kept");
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
  Shards({"set", File("moved.json", kMoved), "--yes"});
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
