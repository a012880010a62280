#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"
#include "tests/support/cache_server.h"
#include "tests/support/zookeeper_server.h"

/// kv cache, on real cache servers. Nothing behind them is asked.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class KvCache : public KvProgram {
 protected:
  std::string Config(const std::vector<std::string>& memcached) const {
    return File("kv.json", Json{{"data", (dir_ / "store").string()},
                                {"zookeeper", {{"servers", zookeeper_.address()}}},
                                {"backends",
                                 {{"mysql",
                                   {{"type", "cached"},
                                    {"of", {{"type", "mysql"}, {"user", "kv"}}},
                                    {"objects", {{"memcached", memcached}}},
                                    {"lease_ms", 200},
                                    {"quarantine_s", 1}}}}}}
                               .dump());
  }
  Output Cache(const std::string& config, std::vector<std::string> words) const {
    words.insert(words.begin(), {KV_PROGRAM, "--config", config, "cache"});
    return RunProgram(words);
  }

  const ZooKeeperServer zookeeper_;
};

TEST_F(KvCache, ShowsChangesAndDropsTheServersInForce) {
  CacheServer first(CacheServer::Kind::kMemcached);
  const std::string config = Config({first.address()});
  Output output = Cache(config, {"status"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, HasSubstr("kv cache use brings them into force"));
  EXPECT_EQ(Cache(config, {"use"}).code, 0);
  output = Cache(config, {"status"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.out, HasSubstr("memcached " + first.address() + "  objects"));
  EXPECT_THAT(output.err, HasSubstr("not all servers are trusted"));
  EXPECT_EQ(Cache(config, {"drop"}).code, 0);
  EXPECT_THAT(Cache(config, {"status"}).out, HasSubstr("in quarantine"));

  CacheServer second(CacheServer::Kind::kMemcached);
  Config({second.address()});
  output = Cache(config, {"status"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.out, HasSubstr(first.address()));
  EXPECT_THAT(output.err, HasSubstr("kv cache use brings them into force"));
  EXPECT_EQ(Cache(config, {"use"}).code, 0);
  output = Cache(config, {"status", "--json"});
  const Json status = Json::parse(output.out);
  EXPECT_EQ(status["as_configured"], true);
  EXPECT_EQ(status["list"], 3);
  EXPECT_EQ(status["servers"][0]["server"], "memcached " + second.address());
}

TEST_F(KvCache, AServerOfTheListBeforeThatDoesNotAnswerIsNamed) {
  CacheServer first(CacheServer::Kind::kMemcached);
  CacheServer second(CacheServer::Kind::kMemcached);
  const std::string config = Config({first.address()});
  EXPECT_EQ(Cache(config, {"use"}).code, 0);
  first.Stop();
  EXPECT_THAT(Cache(config, {"status"}).out, HasSubstr("does not answer"));
  Config({second.address()});
  Output output = Cache(config, {"use"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, HasSubstr(first.address()));
  output = Cache(config, {"status"});
  EXPECT_THAT(output.err, HasSubstr("complete it with kv cache use"));
  output = Cache(config, {"use", "--stopped", "memcached " + first.address()});
  EXPECT_EQ(output.code, 0) << output.err;
}

TEST_F(KvCache, NeedsAConfigurationWithCaches) {
  const std::string config = File(
      "plain.json",
      Json{{"data", (dir_ / "store").string()}, {"zookeeper", {{"servers", zookeeper_.address()}}}}.dump());
  const Output output = Cache(config, {"status"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, HasSubstr("config: backends: none is of type cached"));
  EXPECT_EQ(RunProgram({KV_PROGRAM, "--server", "127.0.0.1:1", "cache", "status"}).code, 2);
}

}  // namespace
}  // namespace kvstore::testing
