#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kvstore_api/limits.h"
#include "tests/server/resp/resp_fixture.h"

/// Rows as hashes, strings, counters and streams.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class HashTest : public RespTest {};
class StringTest : public RespTest {};
class CounterTest : public RespTest {};
class StreamTest : public RespTest {};

// ---- hashes ----

TEST_F(HashTest, ARowIsAHash) {
  EXPECT_EQ(Do("HSET rows:r a 1 b 2"), "(2)");
  EXPECT_EQ(Do("HSET rows:r a 3 c 4"), "(1)") << "one is new";
  EXPECT_EQ(Do("HGET rows:r a"), "\"3\"");
  EXPECT_EQ(Do("HGET rows:r none"), "nil");
  EXPECT_EQ(Do("HGET rows:none a"), "nil");
  EXPECT_EQ(Do("HMGET rows:r c none a c"), R"(["4", nil, "3", "4"])");
  EXPECT_EQ(Do("HGETALL rows:r"), R"(["a", "3", "b", "2", "c", "4"])");
  EXPECT_EQ(Do("HGETALL rows:none"), "[]");
  EXPECT_EQ(Do("HKEYS rows:r"), R"(["a", "b", "c"])");
  EXPECT_EQ(Do("HVALS rows:r"), R"(["3", "2", "4"])");
  EXPECT_EQ(Do("HLEN rows:r"), "(3)");
  EXPECT_EQ(Do("HLEN rows:none"), "(0)");
  EXPECT_EQ(Do("HEXISTS rows:r a"), "(1)");
  EXPECT_EQ(Do("HEXISTS rows:r none"), "(0)");
  EXPECT_EQ(Do("HSTRLEN rows:r a"), "(1)");
  EXPECT_EQ(Do("HSTRLEN rows:r none"), "(0)");
  EXPECT_EQ(Do("HDEL rows:r a none"), "(1)");
  EXPECT_EQ(Do("HDEL rows:r a"), "(0)");
  EXPECT_EQ(Do("HGETALL rows:r"), R"(["b", "2", "c", "4"])");
  EXPECT_EQ(Do("HMSET rows:r d 5"), "OK");
  EXPECT_EQ(Stored("r", "d"), "5");
}

TEST_F(HashTest, AColumnThatIsNamedManyTimesMakesNoAnswerBeyondTheLimit) {
  ASSERT_EQ(Do({"HSET", "rows:r", "c", std::string(1 << 20, 'v')}), "(1)");
  std::vector<std::string> command = {"HMGET", "rows:r", "c", "c", "c"};
  EXPECT_EQ(Do(command).size(), 3 * (1u << 20) + 12);
  command.insert(command.end(), 14, "c");
  EXPECT_THAT(Do(command), StartsWith("-ERR the answer would have more than 16777216 bytes"));
  command.assign(100'003, "none");
  command[0] = "HMGET";
  command[1] = "rows:r";
  EXPECT_EQ(Do(command), "-ERR 100001 columns were given, and the limit is 100000; use several commands");
  EXPECT_EQ(Do("PING"), "PONG");
}

TEST_F(HashTest, APatternIsShort) {
  Do("HSET rows:r a 1");
  const std::string longest = std::string(1'023, '*') + "a";
  EXPECT_EQ(Do("HSCAN rows:r 0 MATCH " + longest), R"(["0", ["a", "1"]])");
  for (const char* scan : {"HSCAN rows:r 0 MATCH ", "ZSCAN links:1 0 MATCH ", "SCAN 0 MATCH "}) {
    EXPECT_EQ(Do(scan + longest + "*"), "-ERR MATCH: a pattern has at most 1024 bytes, this one has 1025")
        << scan;
  }
}

TEST_F(HashTest, APatternThatTakesLongIsMatchedByAWorkerInSmallerParts) {
  std::vector<std::string> put = {"HSET", "rows:r"};
  for (int i = 100; i < 200; ++i) {
    put.push_back(std::string(1'000, 'a') + std::to_string(i));
    put.emplace_back("v");
  }
  ASSERT_EQ(Do(put), "(100)");
  // Only 62 columns are looked at with a pattern of so many bytes.
  const std::string none = "*[" + std::string(1'020, 'b') + "]";
  const std::string part = Do("HSCAN rows:r 0 COUNT 1000 MATCH " + none);
  EXPECT_THAT(part, HasSubstr(", []]"));
  EXPECT_NE(part, R"(["0", []])") << "there is more";
  const std::string cursor = part.substr(2, part.find('"', 2) - 2);
  EXPECT_EQ(Do("HSCAN rows:r " + cursor + " COUNT 1000 MATCH " + none), R"(["0", []])");
}

TEST_F(HashTest, ACursorIsOfTheRowHoweverItsKeyIsWritten) {
  Do("HSET rows:r a 1 b 2");
  const std::string part = Do("HSCAN rows:r 0 COUNT 1");
  const std::string cursor = part.substr(2, part.find('"', 2) - 2);
  EXPECT_EQ(Do("HSCAN rows:\\x72 " + cursor), R"(["0", ["b", "2"]])");
}

TEST_F(HashTest, CommandsThatGoOneByOneTakeAtMostTenThousand) {
  for (const char* command : {"EXISTS", "DEL", "UNLINK"}) {
    std::vector<std::string> words(10'002, "rows:r");
    words[0] = command;
    EXPECT_EQ(Do(words), "-ERR 10001 keys were given, and the limit is 10000; use several commands")
        << command;
    words.pop_back();
    EXPECT_EQ(Do(words), "(0)") << command;
  }
  std::vector<std::string> words(10'003, "1");
  words[0] = "HDEL";
  words[1] = "rows:r";
  EXPECT_EQ(Do(words), "-ERR 10001 columns were given, and the limit is 10000; use several commands");
  words[0] = "ZREM";
  words[1] = "links:1";
  EXPECT_EQ(Do(words), "-ERR 10001 members were given, and the limit is 10000; use several commands");
  words[0] = "ZADD";
  words.insert(words.end(), 10'001, "1");
  EXPECT_EQ(Do(words), "-ERR 10001 members were given, and the limit is 10000; use several commands");
  EXPECT_EQ(Do("ZCARD links:1"), "(0)");
}

TEST_F(HashTest, APutOfManyColumnsIsMadeByAWorkerInItsPlaceOfThePipeline) {
  std::vector<std::string> large = {"HSET", "rows:r"};
  for (int i = 0; i < 5'000; ++i) {
    large.push_back("c" + std::to_string(i));
    large.emplace_back("large");
  }
  client_->Send(RespClient::Encode("HSET rows:r c0 before") + RespClient::Encode(large) +
                RespClient::Encode("HSET rows:r c1 behind") + RespClient::Encode("HMGET rows:r c0 c1 c2"));
  EXPECT_EQ(client_->Receive(), "(1)");
  EXPECT_EQ(client_->Receive(), "(4999)");
  EXPECT_EQ(client_->Receive(), "(0)");
  EXPECT_EQ(client_->Receive(), R"(["large", "behind", "large"])");
}

TEST_F(HashTest, InRESP3AHashIsAMap) {
  EXPECT_THAT(Do("HELLO 3"), HasSubstr(R"("proto": (3))"));
  EXPECT_EQ(Do("HSET rows:r a 1 b 2"), "(2)");
  EXPECT_EQ(Do("HGETALL rows:r"), R"({"a": "1", "b": "2"})");
  EXPECT_EQ(Do("HGET rows:r none"), "nil");
}

TEST_F(HashTest, HsetnxPutsOnlyWhatIsNotThere) {
  EXPECT_EQ(Do("HSETNX rows:r a 1"), "(1)");
  EXPECT_EQ(Do("HSETNX rows:r a 2"), "(0)");
  EXPECT_EQ(Stored("r", "a"), "1");
}

TEST_F(HashTest, BytesAreKeptAsTheyAre) {
  const std::string nul("\0\r\n$5\xff", 6);
  EXPECT_EQ(Do({"HSET", "rows:r", nul, nul}), "(1)");
  EXPECT_EQ(Do({"HGET", "rows:r", nul}), "\"" + nul + "\"");
  EXPECT_EQ(Do({"HSET", "rows:a\\x3Ab\\\\c", "f", ""}), "(1)");
  EXPECT_EQ(Stored("a:b\\c", "f"), "");
}

TEST_F(HashTest, OfAFieldThatIsGivenTwiceTheLastValueCounts) {
  EXPECT_EQ(Do("HSET rows:r a 1 b 2 a 3"), "(2)");
  EXPECT_EQ(Stored("r", "a"), "3");
  std::vector<std::string> words = {"HSET", "rows:many"};
  for (int i = 0; i < 40; ++i) {
    words.push_back("f" + std::to_string(i % 20));
    words.push_back(std::to_string(i));
  }
  EXPECT_EQ(Do(words), "(20)");
  EXPECT_EQ(Stored("many", "f0"), "20");
}

TEST_F(HashTest, APipelineCountsWhatIsNewAsIfItsCommandsCameOneByOne) {
  std::string pipeline;
  for (int i = 0; i < 50; ++i) pipeline += RespClient::Encode("HSET rows:r f" + std::to_string(i % 5) + " v");
  client_->Send(pipeline);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client_->Receive(), i < 5 ? "(1)" : "(0)") << i;
}

TEST_F(HashTest, HscanReturnsEachFieldOnce) {
  std::vector<std::string> words = {"HSET", "rows:r"};
  for (int i = 100; i < 200; ++i) {
    words.push_back("f" + std::to_string(i));
    words.push_back(std::to_string(i));
  }
  ASSERT_EQ(Do(words), "(100)");
  std::string cursor = "0";
  std::string all;
  int parts = 0;
  do {
    const std::string part = Do("HSCAN rows:r " + cursor + " COUNT 7 NOVALUES");
    ASSERT_THAT(part, StartsWith("[\""));
    cursor = part.substr(2, part.find('"', 2) - 2);
    all += part.substr(part.find(", [") + 3);
    ++parts;
  } while (cursor != "0");
  EXPECT_EQ(parts, 15);
  for (int i = 100; i < 200; ++i) {
    const std::string field = "\"f" + std::to_string(i) + "\"";
    EXPECT_EQ(all.find(field), all.rfind(field)) << field;
    EXPECT_NE(all.find(field), std::string::npos) << field;
  }
  EXPECT_EQ(Do("HSCAN rows:r 0 COUNT 1000 MATCH f10[12]"), R"(["0", ["f101", "101", "f102", "102"]])");
  EXPECT_EQ(Do("HSCAN rows:none 0"), R"(["0", []])");
  EXPECT_THAT(Do("HSCAN rows:r 12345"), HasSubstr("-ERR cursor: it is not known here"));
  EXPECT_THAT(Do("HSCAN rows:r x"), HasSubstr("-ERR invalid cursor"));
  EXPECT_THAT(Do("HSCAN rows:r 0 COUNT 0"), HasSubstr("-ERR syntax error"));
}

TEST_F(HashTest, ALargeRowIsReadWholeAndATooLargeOneIsAnError) {
  const std::string value(64 << 10, 'v');
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Do({"HSET", "rows:large", "f" + std::to_string(1000 + i), value}), "(1)");
  }
  // More than a page of it, so that a worker has read the rest.
  const std::string all = Do("HGETALL rows:large");
  EXPECT_GT(all.size(), 100 * value.size());
  EXPECT_EQ(Do("HLEN rows:large"), "(100)");
  const std::string much(4 << 20, 'v');
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(Do({"HSET", "rows:larger", "f" + std::to_string(i), much}), "(1)");
  }
  EXPECT_THAT(Do("HGETALL rows:larger"), HasSubstr("-ERR the answer would have more than"));
  EXPECT_EQ(Do("HLEN rows:larger"), "(5)");
  EXPECT_EQ(Do({"HSET", "rows:larger", "f0", "1", "f1", "2", "f2", "3", "f3", "4", "f4", "5", "g", "6"}),
            "(1)")
      << "what is there may be larger than an answer";
  EXPECT_EQ(Do("HGET rows:larger f4"), "\"5\"");
}

TEST_F(HashTest, WhatIsBeyondTheLimitsIsRefusedAndChangesNothing) {
  EXPECT_THAT(Do({"HSET", "rows:r", "f", std::string(kMaxValueBytes + 1, 'v')}), HasSubstr("-ERR value: "));
  EXPECT_THAT(Do({"HSET", "rows:" + std::string(kMaxRowKeyBytes + 1, 'r'), "f", "v"}),
              HasSubstr("-ERR row: "));
  EXPECT_THAT(Do({"HSET", "rows:", "f", "v"}), HasSubstr("-ERR row: "));
  EXPECT_THAT(Do({"HSET", "rows:r", std::string(kMaxColumnNameBytes + 1, 'c'), "v"}),
              HasSubstr("-ERR column: "));
  EXPECT_EQ(Do("HSET rows:r f"), "-ERR wrong number of arguments for 'hset' command");
  EXPECT_EQ(Do("HSET rows:r f v g"), "-ERR wrong number of arguments for 'hset' command");
  EXPECT_THAT(Do("HSET rows:r:c f v"), HasSubstr("-ERR key: "));
  EXPECT_THAT(Do("HSET nowhere:r f v"), HasSubstr("-ERR dataset: there is none named 'nowhere'"));
  EXPECT_THAT(Do("HSET rows f v"), HasSubstr("-ERR key: it names no dataset"));
  EXPECT_EQ(Do("HLEN rows:r"), "(0)");
}

// ---- strings ----

TEST_F(StringTest, ARowIsAString) {
  EXPECT_EQ(Do("GET rows:k"), "nil");
  EXPECT_EQ(Do("SET rows:k value"), "OK");
  EXPECT_EQ(Stored("k", ""), "value");
  EXPECT_EQ(Do("GET rows:k"), "\"value\"");
  EXPECT_EQ(Do("STRLEN rows:k"), "(5)");
  EXPECT_EQ(Do("STRLEN rows:none"), "(0)");
  EXPECT_EQ(Do("SET rows:k other NX"), "nil");
  EXPECT_EQ(Do("SET rows:new v nx"), "OK");
  EXPECT_EQ(Do("SETNX rows:new w"), "(0)");
  EXPECT_EQ(Do("SETNX rows:newer w"), "(1)");
  EXPECT_EQ(Do("GETDEL rows:k"), "\"value\"");
  EXPECT_EQ(Do("GETDEL rows:k"), "nil");
  EXPECT_EQ(Do("GET rows:k"), "nil");
}

TEST_F(StringTest, ManyKeysAreReadAndPutInDatasetsOfTheirOwn) {
  ASSERT_OK(served_->router().CreateDataset({.name = "more"}));
  EXPECT_EQ(Do("MSET rows:a 1 more:b 2 rows:c 3 rows:a 4"), "OK");
  EXPECT_EQ(Do("MGET rows:a rows:none more:b rows:c rows:a"), R"(["4", nil, "2", "3", "4"])");
  EXPECT_THAT(Do("MSET rows:a"), HasSubstr("wrong number of arguments for 'mset'"));
  EXPECT_THAT(Do("MSET rows:a 1 rows:b"), HasSubstr("wrong number of arguments for 'mset'"));
  EXPECT_THAT(Do("MSET rows:a 9 nokey 1"), HasSubstr("-ERR key: "));
  EXPECT_EQ(Do("GET rows:a"), "\"4\"") << "nothing is put if a key is wrong";
  EXPECT_THAT(Do("MGET rows:a docs:1"), HasSubstr("-WRONGTYPE"));
  std::vector<std::string> set = {"MSET"};
  std::vector<std::string> get = {"MGET"};
  std::string expected;
  for (int i = 0; i < 1'000; ++i) {
    set.push_back("rows:k" + std::to_string(i));
    set.push_back(std::to_string(i));
    get.push_back("rows:k" + std::to_string(i));
    expected += (i > 0 ? ", \"" : "\"") + std::to_string(i) + "\"";
  }
  EXPECT_EQ(Do(set), "OK");
  EXPECT_EQ(Do(get), "[" + expected + "]");
}

TEST_F(StringTest, TimesToLiveAreTheDatasets) {
  for (const char* option : {"EX 10", "PX 10", "EXAT 10", "PXAT 10", "KEEPTTL"}) {
    const std::string error = Do("SET rows:k v " + std::string(option));
    EXPECT_THAT(error, HasSubstr("-ERR ")) << option;
    EXPECT_THAT(error, HasSubstr("kv dataset alter rows --ttl-ms")) << option;
  }
  // Whoever does what the error says gets what it says.
  ASSERT_EQ(Do("XADD rows:other: 1000 v old"), "\"1000-0\"");
  ASSERT_EQ(Do("SET rows:other new"), "OK");
  ASSERT_OK(served_->router().AlterDataset("rows", {.ttl_ms = 3'600'000}));
  EXPECT_EQ(Do("GET rows:other"), "\"new\"");
  EXPECT_EQ(Do("XLEN rows:other:"), "(1)");
  EXPECT_THAT(Do("SET rows:k v XX"), HasSubstr("-ERR XX and GET are not supported"));
  EXPECT_THAT(Do("SET rows:k v NONSENSE"), HasSubstr("-ERR syntax error"));
  EXPECT_THAT(Do("EXPIRE rows:k 10"), HasSubstr("ttl_ms"));
  EXPECT_EQ(Do("GET rows:k"), "nil");
}

// ---- counters ----

TEST_F(CounterTest, Counts) {
  EXPECT_EQ(Do("INCR rows:n"), "(1)");
  EXPECT_EQ(Do("INCRBY rows:n 41"), "(42)");
  EXPECT_EQ(Do("DECR rows:n"), "(41)");
  EXPECT_EQ(Do("DECRBY rows:n 50"), "(-9)");
  EXPECT_EQ(Do("GET rows:n"), "\"-9\"");
  EXPECT_EQ(Do("HINCRBY rows:h f 5"), "(5)");
  EXPECT_EQ(Do("HINCRBY rows:h f -7"), "(-2)");
  EXPECT_EQ(Stored("h", "f"), "-2");
}

TEST_F(CounterTest, WhatIsNoNumberIsRefused) {
  EXPECT_EQ(Do("SET rows:n abc"), "OK");
  EXPECT_THAT(Do("INCR rows:n"), HasSubstr("-ERR value is not an integer or out of range"));
  EXPECT_EQ(Do("SET rows:code 007"), "OK");
  EXPECT_THAT(Do("INCR rows:code"), HasSubstr("-ERR value is not an integer or out of range"));
  EXPECT_THAT(Do("INCRBY rows:m 05"), HasSubstr("-ERR value is not an integer or out of range"));
  EXPECT_THAT(Do("INCRBY rows:m 1.5"), HasSubstr("-ERR value is not an integer or out of range"));
  EXPECT_THAT(Do("DECRBY rows:m -9223372036854775808"), HasSubstr("-ERR value is not an integer"));
  EXPECT_EQ(Do("SET rows:n 9223372036854775807"), "OK");
  EXPECT_THAT(Do("INCR rows:n"), HasSubstr("-ERR increment or decrement would overflow"));
  EXPECT_EQ(Stored("n", ""), "9223372036854775807");
}

TEST_F(CounterTest, NoStepIsLostOrMadeTwiceUnderRaces) {
  constexpr int kClients = 8;
  constexpr int kSteps = 200;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([this, i] {
      RespClient client(address());
      for (int step = 0; step < kSteps; ++step) {
        const std::string answer = client.Do(i % 2 == 0 ? "HINCRBY rows:r n 3" : "HINCRBY rows:r n -1");
        EXPECT_EQ(answer.front(), '(') << answer;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(Stored("r", "n"), std::to_string(kClients / 2 * kSteps * 2));
}

TEST_F(CounterTest, AValueFromTheFutureCannotBeSteppedUnseen) {
  ASSERT_EQ(Do("KV.PUT rows n 1  9000000000000000000 5"), "OK");
  EXPECT_THAT(Do("INCR rows:n"), HasSubstr("-ERR the value has a timestamp in the future"));
  EXPECT_EQ(Do("GET rows:n"), "\"5\"");
  // One that is just ahead is known only after the sum was stored.
  ASSERT_EQ(Do("KV.PUT rows soon 1  " + std::to_string(WallClockMs() + 50'000) + " 5"), "OK");
  EXPECT_THAT(Do("INCR rows:soon"), HasSubstr("-INDOUBT the value has a timestamp in the future"));
  EXPECT_EQ(Do("GET rows:soon"), "\"5\"");
}

// ---- streams ----

TEST_F(StreamTest, AColumnIsAStream) {
  EXPECT_EQ(Do("XADD rows:r:c 1000 v a"), "\"1000-0\"");
  EXPECT_EQ(Do("XADD rows:r:c 3000-0 v c"), "\"3000-0\"");
  EXPECT_EQ(Do("XADD rows:r:c 2000 v b"), "\"2000-0\"") << "entries may come in any order";
  EXPECT_EQ(Do("XRANGE rows:r:c - +"),
            R"([["1000-0", ["v", "a"]], ["2000-0", ["v", "b"]], ["3000-0", ["v", "c"]]])");
  EXPECT_EQ(Do("XREVRANGE rows:r:c + -"),
            R"([["3000-0", ["v", "c"]], ["2000-0", ["v", "b"]], ["1000-0", ["v", "a"]]])");
  EXPECT_EQ(Do("XREVRANGE rows:r:c + - COUNT 1"), R"([["3000-0", ["v", "c"]]])");
  EXPECT_EQ(Do("XRANGE rows:r:c - + COUNT 1"), R"([["1000-0", ["v", "a"]]])");
  EXPECT_EQ(Do("XLEN rows:r:c"), "(3)");
  EXPECT_EQ(Do("XLEN rows:r:none"), "(0)");
  EXPECT_EQ(Do("XRANGE rows:r:none - +"), "[]");
  EXPECT_EQ(Do("XRANGE rows:r:c - + COUNT 0"), "nil");
  EXPECT_EQ(Do("XRANGE rows:r:c - + COUNT -1"), "nil");
  EXPECT_EQ(Do("XREVRANGE rows:r:c + - COUNT -1"), "nil");
  EXPECT_EQ(Do("XRANGE rows:r:c 5000 4000 COUNT 0"), "nil");
  EXPECT_EQ(Do("XRANGE rows:r:c 5000 4000"), "[]");
  EXPECT_EQ(Do("XRANGE rows:r:none - + COUNT 0"), "[]");
  EXPECT_EQ(Do("XDEL rows:r:c 2000-0 2000-0 5"), "(1)");
  EXPECT_EQ(Do("XLEN rows:r:c"), "(2)");
}

TEST_F(StreamTest, RangesAreThoseOfRedis) {
  for (const char* id : {"1000", "2000", "3000"}) Do("XADD rows:r:c " + std::string(id) + " v x");
  const auto ids = [this](const std::string& range) {
    const std::string answer = Do("XRANGE rows:r:c " + range);
    std::string found;
    for (const char* id : {"1000", "2000", "3000"}) {
      if (answer.find(std::string(id) + "-0") != std::string::npos) found += id[0];
    }
    return found;
  };
  EXPECT_EQ(ids("1000 2000"), "12");
  EXPECT_EQ(ids("1000-0 2000-0"), "12");
  EXPECT_EQ(ids("1000-1 +"), "23") << "the entry's sequence is 0";
  EXPECT_EQ(ids("(1000 +"), "23");
  EXPECT_EQ(ids("(1000-0 (3000-0"), "2");
  EXPECT_EQ(ids("- (3000-5"), "123");
  EXPECT_EQ(ids("- (3000"), "123") << "without a sequence an end stands for the last one";
  EXPECT_EQ(ids("2000 1000"), "");
  EXPECT_EQ(ids("+ -"), "");
  EXPECT_THAT(Do("XRANGE rows:r:c a b"), HasSubstr("-ERR Invalid stream ID"));
  EXPECT_THAT(Do("XRANGE rows:r:c - + COUNT x"), HasSubstr("-ERR value is not an integer"));
  EXPECT_THAT(Do("XRANGE rows:r:c - + LIMIT 1"), HasSubstr("-ERR syntax error"));
  EXPECT_THAT(Do("XRANGE rows:r - +"), HasSubstr("-ERR key: it names no column"));
}

TEST_F(StreamTest, TheStoreGivesEachEntryAnIdOfItsOwn) {
  std::string pipeline;
  for (int i = 0; i < 500; ++i) pipeline += RespClient::Encode("XADD rows:r:c * v " + std::to_string(i));
  client_->Send(pipeline);
  uint64_t last = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string id = client_->Receive();
    ASSERT_THAT(id, StartsWith("\""));
    const uint64_t timestamp = std::stoull(id.substr(1));
    EXPECT_GT(timestamp, last);
    last = timestamp;
  }
  EXPECT_EQ(Do("XLEN rows:r:c"), "(500)");
  EXPECT_THAT(Do("XREVRANGE rows:r:c + - COUNT 1"), HasSubstr(R"(["v", "499"])"));
}

TEST_F(StreamTest, ALongOneIsReadByPages) {
  std::vector<CellWrite> cells;
  const std::string value(100, 'x');
  for (uint64_t i = 1; i <= 60'000; ++i) cells.push_back({"c", value, i});
  ASSERT_OK(served_->router().PutRow("rows", "r", cells, {}));
  EXPECT_EQ(Do("XLEN rows:r:c"), "(60000)");
  const std::string newest = Do("XREVRANGE rows:r:c + - COUNT 50000");
  EXPECT_THAT(newest, StartsWith(R"([["60000-0")"));
  EXPECT_THAT(newest, HasSubstr(R"(["10001-0", )"));
  EXPECT_EQ(newest.find(R"(["10000-0", )"), std::string::npos);
  for (uint64_t i = 60'001; i <= 110'000; ++i) cells[i - 60'001].timestamp = i;
  cells.resize(50'000);
  ASSERT_OK(served_->router().PutRow("rows", "r", cells, {}));
  EXPECT_THAT(Do("XRANGE rows:r:c - +"), HasSubstr("-ERR the answer would have more than"));
  EXPECT_EQ(Do("XLEN rows:r:c"), "(110000)");
}

TEST_F(StreamTest, WhatAColumnDoesNotHaveIsRefused) {
  EXPECT_THAT(Do("XADD rows:r:c * field value"), HasSubstr("-ERR an entry has exactly one field"));
  EXPECT_THAT(Do("XADD rows:r:c * v a v b"), HasSubstr("-ERR an entry has exactly one field"));
  EXPECT_THAT(Do("XADD rows:r:c 1000-1 v a"), HasSubstr("-ERR an entry's ID is its timestamp"));
  EXPECT_THAT(Do("XADD rows:r:c MAXLEN 2 * v a"), HasSubstr("kv dataset alter rows --max-versions"));
  for (const char* id : {"1", "2", "3"}) Do("XADD rows:r:c " + std::string(id) + " v x");
  ASSERT_OK(served_->router().AlterDataset("rows", {.max_versions = 2}));
  EXPECT_EQ(Do("XLEN rows:r:c"), "(2)") << "as the error said";
  EXPECT_THAT(Do("XADD rows:r:c x v a"), HasSubstr("-ERR Invalid stream ID"));
  EXPECT_THAT(Do("XREAD STREAMS rows:r:c 0"), HasSubstr("-ERR 'xread' is not supported"));
  ASSERT_OK(served_->router().CreateDataset({.name = "few", .max_versions = 2}));
  for (const char* id : {"1", "2", "3"}) Do("XADD few:r:c " + std::string(id) + " v x");
  EXPECT_EQ(Do("XLEN few:r:c"), "(2)");
  EXPECT_THAT(Do("XDEL few:r:c 3"), HasSubstr("-ERR cells: single cells can be deleted only"));
}

}  // namespace
}  // namespace kvstore::testing
