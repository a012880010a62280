#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"

/// Which store a command uses, by its options and by the environment, and what it says if a server cannot be
/// used.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class KvStoreChoice : public KvProgram {
 protected:
  /// Runs kv with these variables of the environment and no others of KVStore.
  static Output In(const Words& variables, const Words& arguments) {
    Words command = {"env", "-u", "KV_DATA", "-u", "KV_CONFIG", "-u", "KV_SERVER", "-u", "KV_TOKEN"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.emplace_back(KV_PROGRAM);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command);
  }
  static void ExpectWrong(const Output& output, const Words& texts) {
    EXPECT_EQ(output.code, 2) << output.out << output.err;
    EXPECT_EQ(output.out, "");
    for (const std::string& text : texts) {
      EXPECT_NE(output.err.find(text), std::string::npos) << "'" << text << "' is not in: " << output.err;
    }
  }
  std::string Store(const std::string& name) const { return (dir_ / name).string(); }
  /// Makes a store whose row r says its name.
  void Make(const std::string& name) const {
    EXPECT_EQ(In({}, {"--data", Store(name), "dataset", "create", "d"}).code, 0);
    EXPECT_EQ(In({}, {"--data", Store(name), "put", "d", "r", "name=" + name}).code, 0);
  }
  /// Returns the name of the store that was read; the error, if none was.
  static std::string Read(const Words& variables, Words arguments) {
    arguments.insert(arguments.end(), {"get", "d", "r", "--json"});
    const Output output = In(variables, arguments);
    return output.code == 0 ? Json::parse(output.out)["items"][0]["cells"][0]["value"].get<std::string>()
                            : output.err;
  }
};

TEST_F(KvStoreChoice, AnOptionBeatsTheEnvironment) {
  for (const char* name : {"live", "copy", "other"}) Make(name);
  const std::string config = File("kv.json", R"({"data": "other"})");
  const KvServer server(KV_PROGRAM, {"--data", Store("live")});
  const std::string live = "KV_SERVER=" + server.address();
  const std::string copy = "KV_DATA=" + Store("copy");
  const std::string other = "KV_CONFIG=" + config;

  EXPECT_EQ(Read({live}, {}), "live");
  EXPECT_EQ(Read({live, copy, other}, {}), "live") << "within the environment a server wins";
  EXPECT_EQ(Read({copy, other}, {}), "copy") << "and a directory wins over that of the configuration";
  EXPECT_EQ(Read({live}, {"--data", Store("copy")}), "copy");
  EXPECT_EQ(Read({live, copy}, {"--config", config}), "other");
  EXPECT_EQ(Read({copy, other}, {"--server", server.address()}), "live");
  EXPECT_EQ(Read({live}, {"--config", config, "--data", Store("copy")}), "copy");

  // Nothing is written to the server, nor removed from it.
  EXPECT_EQ(In({live}, {"--data", Store("copy"), "put", "d", "r", "name=changed"}).code, 0);
  EXPECT_EQ(Read({live}, {}), "live");
  EXPECT_EQ(Read({copy}, {}), "changed");
  EXPECT_EQ(In({live}, {"dataset", "drop", "d", "--yes", "--data", Store("copy")}).code, 0);
  EXPECT_EQ(Read({live}, {}), "live");
}

TEST_F(KvStoreChoice, AServerTogetherWithAnotherStoreIsWrongUsage) {
  const std::string config = File("kv.json", R"({"data": "store"})");
  ExpectWrong(In({}, {"--server", "127.0.0.1:1", "--data", Store("store"), "get", "d", "r"}),
              {"kv get: --server: not together with --data", "kv get --help says more"});
  ExpectWrong(In({}, {"dataset", "list", "--config", config, "--server", "127.0.0.1:1"}),
              {"kv dataset list: --server: not together with --config"});
}

TEST_F(KvStoreChoice, CommandsThatNeedNoServerSayWhatTheyNeed) {
  const Words server = {"--server", "127.0.0.1:1"};
  const auto with_server = [&](Words command) {
    command.insert(command.begin(), server.begin(), server.end());
    return In({}, command);
  };
  ExpectWrong(with_server({"shards", "watch"}),
              {"kv shards watch: --server: this command watches the shard maps in ZooKeeper", "--config FILE",
               "--zookeeper SERVERS"});
  ExpectWrong(with_server({"shards", "validate"}), {"--server: this command reads a file"});
  ExpectWrong(with_server({"serve"}),
              {"kv serve: --server: this command starts a server itself", "--data DIR", "--listen ADDR"});
  ExpectWrong(with_server({"repair"}),
              {"kv repair: --server: this command works on a directory", "--data DIR"});

  // In the environment a server is for other commands.
  const std::string map = File("map.json", R"([{"range": [0, 511], "master": "A", "slave": "B"}])");
  EXPECT_EQ(In({"KV_SERVER=127.0.0.1:1"}, {"shards", "validate", map}).code, 0);
  Make("store");
  EXPECT_EQ(In({"KV_SERVER=127.0.0.1:1", "KV_DATA=" + Store("store")}, {"repair"}).code, 0);
  ExpectWrong(In({}, {"shards", "status"}),
              {"--config is missing", "KV_CONFIG", "--server ADDR", "KV_SERVER"});
  const Output away = In({"KV_SERVER=127.0.0.1:1"}, {"shards", "status", "--timeout-ms", "300"});
  EXPECT_EQ(away.code, 1);
  EXPECT_NE(away.err.find("server 127.0.0.1:1"), std::string::npos) << away.err;
  const Output serve = In({"KV_SERVER=127.0.0.1:1"}, {"serve"});
  ExpectWrong(serve, {"--data is missing", "KV_DATA", "--config FILE"});
  EXPECT_EQ(serve.err.find("--server"), std::string::npos) << serve.err;
  ExpectWrong(In({}, {"get", "d", "r"}),
              {"--data is missing", "--config FILE", "--server ADDR", "KV_SERVER"});
  ExpectWrong(In({"KV_SERVER=127.0.0.1:1"}, {"--data", Store("store"), "stat"}), {"--server is missing"});
}

TEST_F(KvStoreChoice, WithoutATokenTheWaysToGiveOneAreNamed) {
  const Json token = Json::parse(Ok({"token", "web", "--right", "*", "read", "--json"}));
  File("tokens.json", Json{{"tokens", {token["entry"]}}}.dump());
  Make("store");
  const std::string config = File("kv.json", R"({"data": "store", "server": {"tokens": "tokens.json"}})");
  const KvServer server(KV_PROGRAM, {"--config", config});
  const Words get = {"--server", server.address(), "get", "d", "r"};
  for (const Words& variables : std::vector<Words>{{}, {"KV_TOKEN=kv_unknown"}}) {
    const Output output = In(variables, get);
    EXPECT_EQ(output.code, 1);
    for (const char* text : {"UNAUTHENTICATED", "KV_TOKEN", "--token-file FILE"}) {
      EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
    }
  }
  EXPECT_EQ(In({"KV_TOKEN=" + token["token"].get<std::string>()}, get).code, 0);
}

TEST_F(KvStoreChoice, AServerThatIsAwayIsWaitedForAloud) {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  const Words away = {"--server", address, "--timeout-ms", "3000"};
  for (const Words& command :
       std::vector<Words>{{"get", "d", "r"}, {"put", "d", "r", "a=1"}, {"scan", "d"}}) {
    Words words = away;
    words.insert(words.end(), command.begin(), command.end());
    const Output output = In({}, words);
    EXPECT_EQ(output.code, 1);
    const size_t said = output.err.find("kv: server " + address + ": failed to connect");
    ASSERT_NE(said, std::string::npos) << output.err;
    const std::string line = output.err.substr(said, output.err.find('\n', said) - said);
    EXPECT_NE(line.find("; trying again"), std::string::npos) << output.err;
    EXPECT_NE(output.err.find("\nkv: ", said), std::string::npos) << "the error comes later: " << output.err;
    EXPECT_EQ(output.err.find("; trying again", said + line.size()), std::string::npos)
        << "once: " << output.err;
  }
  Words words = away;
  words.insert(words.end(), {"get", "d", "r"});
  EXPECT_NE(In({}, words).err.find(" s more (--timeout-ms)"), std::string::npos);
  words.emplace_back("--json");
  const Output json = In({}, words);
  EXPECT_EQ(Json::parse(json.err)["ok"], false) << "an error and nothing else: " << json.err;
}

TEST_F(KvStoreChoice, ABackendIsNamedByAConfiguration) {
  for (const char* text :
       {"backend: there is none named 'mysql', only 'rocksdb'; the configuration must name it",
        "--config FILE", "kv config check FILE"}) {
    Fails({"dataset", "create", "d", "--backend", "mysql"}, text);
  }
}

TEST_F(KvStoreChoice, ADatasetThatDoesNotMigrateSaysHowToBegin) {
  Make("store");
  Fails({"migrate", "status", "d"},
        "dataset: 'd' does not migrate; kv migrate create d --to BACKEND records a migration, and "
        "kv migrate start d begins it");
}

TEST_F(KvStoreChoice, ACommandLogsNothingForInformationUnlessItIsAskedTo) {
  const auto map = [](const std::string& master, const std::string& last) {
    return R"([{"range": [0, )" + last + R"(], "master": ")" + master + R"(", "slave": "127.0.0.1:3"}])";
  };
  File("mod.json", map("127.0.0.1:1", "15"));
  File("id.json", map("127.0.0.1:1", "511"));
  const std::string config = File("kv.json", R"({"data": "store", "default_backend": "rocksdb",
                          "mysql": {"user": "u", "password": "", "id_map": "id.json", "mod_map": "mod.json"}})");
  EXPECT_EQ(In({}, {"--config", config, "dataset", "create", "d"}).code, 0);
  // The next process finds the copy of an older map.
  File("id.json", map("127.0.0.1:2", "511"));
  const Output quiet = In({}, {"--config", config, "get", "d", "r"});
  EXPECT_EQ(quiet.out, "(none)\n");
  EXPECT_EQ(quiet.err, "");
  File("id.json", map("127.0.0.1:1", "511"));
  const Output verbose = In({}, {"--config", config, "--verbose", "get", "d", "r"});
  EXPECT_EQ(verbose.out, "(none)\n");
  EXPECT_NE(verbose.err.find("id.json: shards 0..511"), std::string::npos) << verbose.err;
}

}  // namespace
}  // namespace kvstore::testing
