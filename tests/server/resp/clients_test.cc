#include <gmock/gmock.h>
#include <hiredis/hiredis.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/resp/resp_fixture.h"
#include "tests/support/processes.h"

/// The clients that people have. Those that this machine lacks are left out, with a word.
namespace kvstore::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RespClientsTest : public RespTest {
 protected:
  std::string port() const { return address().substr(address().rfind(':') + 1); }
  /// Runs redis-cli or redis-benchmark on the server.
  Output Run(const std::string& program, const std::vector<std::string>& arguments,
             const std::string& input = "") const {
    std::vector<std::string> command = {program, "-p", port()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command, input);
  }
  std::string Cli(const std::vector<std::string>& arguments) const {
    const Output output = Run("redis-cli", arguments);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  static bool Has(const std::string& program) {
    return RunProgram({"/bin/sh", "-c", "command -v " + program}).code == 0;
  }
};

// ---- hiredis ----

struct Free {
  void operator()(redisContext* context) const { ::redisFree(context); }
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};

TEST_F(RespClientsTest, HiredisSpeaksToIt) {
  const std::unique_ptr<redisContext, Free> context(::redisConnect("127.0.0.1", std::stoi(port())));
  ASSERT_TRUE(context != nullptr && context->err == 0);
  const auto run = [&](const char* line) {
    return std::unique_ptr<redisReply, Free>(static_cast<redisReply*>(::redisCommand(context.get(), line)));
  };
  EXPECT_EQ(run("HSET rows:r a 1 b 2")->integer, 2);
  const auto all = run("HGETALL rows:r");
  ASSERT_EQ(all->type, REDIS_REPLY_ARRAY);
  ASSERT_EQ(all->elements, 4u);
  EXPECT_STREQ(all->element[3]->str, "2");
  EXPECT_EQ(run("GET rows:none")->type, REDIS_REPLY_NIL);
  const auto error = run("GET docs:1");
  ASSERT_EQ(error->type, REDIS_REPLY_ERROR);
  EXPECT_THAT(error->str, ::testing::StartsWith("WRONGTYPE"));
  constexpr int kPipelined = 5'000;
  for (int i = 1; i <= kPipelined; ++i) {
    ASSERT_EQ(::redisAppendCommand(context.get(), "XADD rows:s:c %d v %b", i, "a\0b", size_t{3}), REDIS_OK);
  }
  for (int i = 1; i <= kPipelined; ++i) {
    void* taken = nullptr;
    ASSERT_EQ(::redisGetReply(context.get(), &taken), REDIS_OK);
    const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(taken));
    ASSERT_EQ(std::string(reply->str), std::to_string(i) + "-0");
  }
  const auto newest = run("XREVRANGE rows:s:c + - COUNT 50");
  ASSERT_EQ(newest->elements, 50u);
  EXPECT_STREQ(newest->element[0]->element[0]->str, "5000-0");
  EXPECT_EQ(newest->element[0]->element[1]->element[1]->len, 3u);
}

// ---- redis-cli ----

TEST_F(RespClientsTest, RedisCliSpeaksToIt) {
  if (!Has("redis-cli")) GTEST_SKIP() << "there is no redis-cli here";
  EXPECT_EQ(Cli({"SET", "rows:k", "value"}), "OK\n");
  EXPECT_EQ(Cli({"GET", "rows:k"}), "value\n");
  EXPECT_EQ(Cli({"HSET", "rows:r", "a", "1", "b", "2"}), "2\n");
  EXPECT_EQ(Cli({"-3", "HGETALL", "rows:r"}), "a 1\nb 2\n");
  EXPECT_EQ(Cli({"--no-raw", "HGETALL", "rows:r"}), "1) \"a\"\n2) \"1\"\n3) \"b\"\n4) \"2\"\n");
  EXPECT_EQ(Cli({"--scan", "--pattern", "rows:*"}), "rows:k\nrows:r\n");
  EXPECT_THAT(Cli({"INFO"}), HasSubstr("kvstore_version:"));
  EXPECT_THAT(Cli({"COMMAND", "DOCS", "hset"}), HasSubstr("summary"));
  EXPECT_THAT(Cli({"EXPIRE", "rows:k", "5"}), HasSubstr("ERR 'expire' is not supported"));
  EXPECT_EQ(Cli({"-r", "3", "INCR", "rows:n"}), "1\n2\n3\n");
  const Output typed = Run("redis-cli", {}, "set rows:t \"a b\"\nget rows:t\nxadd rows:s:c 5 v x\n");
  EXPECT_EQ(typed.out, "OK\na b\n5-0\n");
}

TEST_F(RespClientsTest, RedisCliLoadsByItsPipe) {
  if (!Has("redis-cli")) GTEST_SKIP() << "there is no redis-cli here";
  std::string commands;
  for (int i = 0; i < 20'000; ++i) {
    const std::string n = std::to_string(i);
    commands += RespClient::Encode("HSET rows:r" + n + " f " + n);
  }
  const Output loaded = Run("redis-cli", {"--pipe"}, commands);
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_THAT(loaded.out, HasSubstr("errors: 0, replies: 20000"));
  EXPECT_EQ(Do("HGET rows:r19999 f"), "\"19999\"");
}

TEST_F(RespClientsTest, RedisBenchmarkRunsThroughTheCommands) {
  if (!Has("redis-benchmark")) GTEST_SKIP() << "there is no redis-benchmark here";
  const std::vector<std::vector<std::string>> loads = {{"HSET", "rows:__rand_int__", "f", "v"},
                                                       {"HGETALL", "rows:__rand_int__"},
                                                       {"XADD", "rows:s:c", "*", "v", "x"},
                                                       {"XREVRANGE", "rows:s:c", "+", "-", "COUNT", "50"},
                                                       {"SET", "rows:__rand_int__", "v"},
                                                       {"GET", "rows:__rand_int__"},
                                                       {"INCR", "rows:n"},
                                                       {"ZADD", "links:1", "__rand_int__", "__rand_int__"},
                                                       {"ZREVRANGE", "links:1", "0", "9"},
                                                       {"PING"}};
  for (const auto& load : loads) {
    std::vector<std::string> arguments = {"-n", "3000", "-c", "20", "-P", "10", "-r", "500", "-q"};
    arguments.insert(arguments.end(), load.begin(), load.end());
    const Output output = Run("redis-benchmark", arguments);
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_THAT(output.out,
                AllOf(HasSubstr("requests per second"), ::testing::Not(HasSubstr("rror from server"))))
        << load[0];
  }
  EXPECT_EQ(Do("XLEN rows:s:c"), "(3000)");
  EXPECT_EQ(Do("GET rows:n"), "\"3000\"");
}

// ---- redis-py ----

TEST_F(RespClientsTest, RedisPySpeaksToIt) {
  // ./dev test makes the environment, if it can have redis-py.
  const std::string own = std::string(KV_BUILD) + "/../venv-redis/bin/python";
  const std::string python = std::filesystem::exists(own) ? own : "python3";
  if (RunProgram({python, "-c", "import redis"}).code != 0) GTEST_SKIP() << "there is no redis-py here";
  for (const char* version : {"2", "3"}) {
    const Output output = RunProgram({python, KV_REDIS_PY, port(), version});
    EXPECT_EQ(output.code, 0) << output.out << output.err;
  }
}

}  // namespace
}  // namespace kvstore::testing
