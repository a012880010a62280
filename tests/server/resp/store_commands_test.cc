#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/resp/commands/table.h"
#include "tests/server/resp/resp_fixture.h"

/// Commands on keys of all kinds, on the store as a whole, on the connection and on the server.
namespace kvstore::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class KeysTest : public RespTest {
 protected:
  /// Returns all keys that a SCAN returns, each of which must come once.
  std::set<std::string> ScanAll(const std::string& options, int* parts = nullptr) {
    std::set<std::string> keys;
    std::string cursor = "0";
    do {
      const std::string part = Do("SCAN " + cursor + options);
      EXPECT_THAT(part, StartsWith("[\""));
      if (part.front() != '[') return keys;
      cursor = part.substr(2, part.find('"', 2) - 2);
      size_t at = part.find(", [") + 3;
      while (part[at] == '"') {
        const size_t end = part.find('"', at + 1);
        const std::string key = part.substr(at + 1, end - at - 1);
        EXPECT_TRUE(keys.insert(key).second) << key << " comes twice";
        at = end + (part.compare(end + 1, 2, ", ") == 0 ? 3 : 1);
      }
      if (parts != nullptr) ++*parts;
    } while (cursor != "0");
    return keys;
  }
};
class StoreCommandsTest : public RespTest {};
class ConnectionCommandsTest : public RespTest {};

// ---- keys ----

TEST_F(KeysTest, ATypeFollowsFromWhatIsThere) {
  const std::string id = Do("KV.CREATE docs {}");
  const std::string object = "docs:" + id.substr(1, id.size() - 2);
  Do("SET rows:string v");
  Do("HSET rows:hash f v");
  Do("ZADD links:7 1 2");
  EXPECT_EQ(Do("TYPE rows:string"), "string");
  EXPECT_EQ(Do("TYPE rows:hash"), "hash");
  EXPECT_EQ(Do("TYPE rows:hash:f"), "stream");
  EXPECT_EQ(Do("TYPE rows:hash:none"), "none");
  EXPECT_EQ(Do("TYPE rows:none"), "none");
  EXPECT_EQ(Do("TYPE " + object), "ReJSON-RL");
  EXPECT_EQ(Do("TYPE links:7"), "zset");
  EXPECT_EQ(Do("TYPE links:8"), "none");
  EXPECT_THAT(Do("TYPE nowhere:1"), HasSubstr("-ERR dataset: there is none"));
  EXPECT_EQ(Do("EXISTS rows:string rows:hash rows:hash:f rows:none links:7 links:8 rows:string " + object),
            "(6)");
  EXPECT_EQ(Do("DEL rows:hash:f rows:none links:7 " + object), "(3)");
  EXPECT_EQ(Do("EXISTS rows:hash links:7 " + object), "(0)") << "the row had this column alone";
  EXPECT_EQ(Do("UNLINK rows:string rows:string"), "(1)");
  EXPECT_EQ(Do("TYPE rows:string"), "none");
}

TEST_F(KeysTest, WhatADatasetHoldsDecidesWhichCommandsItTakes) {
  const std::vector<std::string> wrong = {
      "HGET docs:1 f",         "HSET links:1 f v",     "GET docs:1",       "SET links:1 v",
      "XADD docs:1:c * v x",   "XRANGE links:1:c - +", "ZADD rows:1 1 1",  "ZRANGE docs:1 0 1",
      "ZSCORE rows:r 1",       "JSON.GET rows:1",      "JSON.DEL links:1", "KV.GET docs r",
      "KV.CREATE rows {}",     "KV.LIST rows 1",       "HGETALL docs:abc", "INCR docs:1",
      "HDEL links:1 f",        "ZCARD rows:r",         "MGET links:1",     "XLEN docs:1:c",
      "HSCAN docs:1 0",        "ZSCAN rows:r 0",       "MSET docs:1 v",    "JSON.SET rows:1 $ {}",
      "KV.PUT links r 1 c * v"};
  for (const std::string& command : wrong) EXPECT_THAT(Do(command), StartsWith("-WRONGTYPE ")) << command;
}

TEST_F(KeysTest, ScanReturnsEachKeyOfAllDatasetsOnce) {
  std::set<std::string> expected;
  for (int i = 0; i < 57; ++i) {
    const std::string row = "r" + std::to_string(i);
    Do("HSET rows:" + row + " f v g w");
    expected.insert("rows:" + row);
    Do("ZADD links:" + std::to_string(i) + " 1 1 2 2 3 3");
    expected.insert("links:" + std::to_string(i));
    const std::string id = Do("KV.CREATE docs {}");
    expected.insert("docs:" + id.substr(1, id.size() - 2));
  }
  Do("SET rows:a\\x3Ab v");
  expected.insert("rows:a\\x3Ab");
  int parts = 0;
  EXPECT_EQ(ScanAll("", &parts), expected);
  EXPECT_GT(parts, 15) << "some keys at a time";
  EXPECT_EQ(ScanAll(" COUNT 1000"), expected);
  EXPECT_EQ(ScanAll(" COUNT 1"), expected);
  EXPECT_EQ(ScanAll(" MATCH rows:r1? COUNT 3").size(), 10u);
  EXPECT_EQ(ScanAll(" MATCH link*").size(), 57u);
  EXPECT_EQ(ScanAll(" TYPE zset").size(), 57u);
  EXPECT_EQ(ScanAll(" TYPE ReJSON-RL").size(), 57u);
  EXPECT_EQ(ScanAll(" TYPE string"), std::set<std::string>{"rows:a\\x3Ab"});
  EXPECT_EQ(ScanAll(" TYPE hash").size(), 57u);
  EXPECT_EQ(ScanAll(" TYPE list").size(), 0u);
  EXPECT_EQ(ScanAll(" MATCH nowhere:*").size(), 0u);
}

TEST_F(KeysTest, AScanGoesOnBehindADatasetThatWasDropped) {
  for (int i = 0; i < 30; ++i) Do("ZADD links:" + std::to_string(i) + " 1 1");
  Do("SET rows:last v");
  const std::string first = Do("SCAN 0 COUNT 10");
  const std::string cursor = first.substr(2, first.find('"', 2) - 2);
  ASSERT_OK(served_->router().DropDataset("links", {}));
  std::string next = Do("SCAN " + cursor + " COUNT 10");
  EXPECT_THAT(next, HasSubstr("[]")) << next;
  next = Do("SCAN " + next.substr(2, next.find('"', 2) - 2));
  EXPECT_THAT(next, HasSubstr("rows:last"));
}

TEST_F(KeysTest, ALargeRowIsOneKey) {
  const std::string value(300 << 10, 'v');
  for (int i = 0; i < 4; ++i) Do({"HSET", "rows:large", "f" + std::to_string(i), value});
  Do("HSET rows:small f v");
  EXPECT_EQ(ScanAll(" COUNT 1"), (std::set<std::string>{"rows:large", "rows:small"}));
}

TEST_F(KeysTest, DbsizeIsRoughAndNotNothing) {
  for (int i = 0; i < 20; ++i) Do("SET rows:k" + std::to_string(i) + " v");
  const std::string size = Do("DBSIZE");
  EXPECT_EQ(size.front(), '(');
  EXPECT_GE(std::stoi(size.substr(1)), 20);
}

// ---- KV.* ----

TEST_F(StoreCommandsTest, CellsArePutAndReadWithTheirTimestamps) {
  EXPECT_EQ(Do("KV.PUT rows r 3 a 1 x a 2 y b 1 z"), "OK") << "each brings its timestamp";
  EXPECT_EQ(Do("KV.GET rows r VERSIONS 5"),
            R"([[["a", [[(2), "y"], [(1), "x"]]], ["b", [[(1), "z"]]]], nil])");
  EXPECT_EQ(Do("KV.GET rows r"), R"([[["a", [[(2), "y"]]], ["b", [[(1), "z"]]]], nil])");
  EXPECT_EQ(Do("KV.GET rows r COLUMNS 2 b none"), R"([[["b", [[(1), "z"]]]], nil])");
  EXPECT_EQ(Do("KV.GET rows r RANGE 1 2 VERSIONS 9"), R"([[["a", [[(1), "x"]]], ["b", [[(1), "z"]]]], nil])");
  const std::string page = Do("KV.GET rows r LIMIT 1");
  EXPECT_THAT(page, StartsWith(R"([[["a", [[(2), "y"]]]], ")"));
  const std::string marker = page.substr(page.rfind(", \"") + 3, page.size() - page.rfind(", \"") - 5);
  EXPECT_EQ(Do("KV.GET rows r LIMIT 1 MARKER " + marker), R"([[["b", [[(1), "z"]]]], nil])");
  EXPECT_THAT(Do("KV.GET rows r MARKER abc"), HasSubstr("-ERR marker"));
  EXPECT_EQ(Do("KV.GET rows none"), "[[], nil]");
  const std::string assigned = Do("KV.PUT rows r 1 c * v");
  EXPECT_EQ(assigned.front(), '(');
  EXPECT_GT(std::stoull(assigned.substr(1)), 1'600'000'000'000u);
}

TEST_F(StoreCommandsTest, APutMayHaveACondition) {
  EXPECT_EQ(Do("KV.PUT rows r 1 a 1 x IFABSENT a"), "OK");
  EXPECT_EQ(Do("KV.PUT rows r 1 a 2 y IFABSENT a"), "nil");
  EXPECT_EQ(Do("KV.PUT rows r 1 a 2 y IFEQUALS a z"), "nil");
  EXPECT_EQ(Do("KV.PUT rows r 1 a 2 y IFEQUALS a x SYNC"), "OK");
  EXPECT_EQ(Stored("r", "a"), "y");
  for (const char* wrong :
       {"2 a 1 x", "0 a 1 x", "x a 1 x", "1 a now x", "1 a 1 x IFABSENT", "1 a 1 x NONSENSE",
        "1 a 1 x IFABSENT a IFABSENT b", "18446744073709551615 a 1 x"})
    EXPECT_THAT(Do("KV.PUT rows r " + std::string(wrong)), HasSubstr("-ERR ")) << wrong;
}

TEST_F(StoreCommandsTest, ScansReturnPagesOfEachShape) {
  for (const char* row : {"a", "b", "c"}) Do("KV.PUT rows " + std::string(row) + " 1 f 1 v");
  EXPECT_EQ(Do("KV.SCAN rows START b"),
            R"([[["b", [["f", [[(1), "v"]]]], (0)], ["c", [["f", [[(1), "v"]]]], (0)]], nil])");
  const std::string page = Do("KV.SCAN rows LIMIT 2 END c");
  EXPECT_THAT(page, StartsWith(R"([[["a", )"));
  const std::string marker = page.substr(page.rfind(", \"") + 3, page.size() - page.rfind(", \"") - 5);
  EXPECT_EQ(Do("KV.SCAN rows LIMIT 2 END c MARKER " + marker), "[[], nil]");
  Do("ZADD links:5 10 50 20 60");
  EXPECT_EQ(Do("KV.SCAN links"), R"([[["5", "50", (10)], ["5", "60", (20)]], nil])");
  EXPECT_EQ(Do("KV.SCAN links START 6"), "[[], nil]");
  const std::string id = Do(R"(KV.CREATE docs {"n":1})");
  EXPECT_THAT(Do("KV.SCAN docs"), AllOf(HasSubstr("[[[" + id + ", ("), HasSubstr(R"({"n":1})")));
  EXPECT_THAT(Do("KV.SCAN docs VERSIONS 2"), HasSubstr("-ERR COLUMNS, VERSIONS and RANGE"));
  EXPECT_THAT(Do("KV.SCAN links START x"), HasSubstr("-ERR START, END"));
  EXPECT_THAT(Do("KV.SCAN rows LIMIT 0"), HasSubstr("-ERR LIMIT"));
  EXPECT_THAT(Do("KV.SCAN nowhere"), HasSubstr("-ERR dataset: there is none"));
}

TEST_F(StoreCommandsTest, TheJoinHasTheObjects) {
  const std::string first = Do(R"(KV.CREATE docs {"n":1})");
  const std::string second = Do(R"(KV.CREATE docs {"n":2})");
  Do("ZADD links:9 1 " + first.substr(1, first.size() - 2));
  Do("ZADD links:9 2 " + second.substr(1, second.size() - 2));
  EXPECT_EQ(Do("KV.LIST links 9"),
            "[[[" + first + R"(, (1), "{"n":1}"], [)" + second + R"(, (2), "{"n":2}"]], nil])");
  EXPECT_THAT(Do("KV.LIST links 9 REV LIMIT 1"), StartsWith("[[[" + second));
  EXPECT_EQ(Do("KV.LIST links 9 OFFSET 1"), "[[[" + second + R"(, (2), "{"n":2}"]], nil])");
  Do("JSON.DEL docs:" + first.substr(1, first.size() - 2));
  EXPECT_THAT(Do("KV.LIST links 9"), StartsWith("[[[" + first + ", (1), nil]"));
  EXPECT_THAT(Do("KV.LIST links x"), HasSubstr("-ERR from: is no ID"));
}

TEST_F(StoreCommandsTest, DatasetsAreListed) {
  EXPECT_THAT(
      Do("KV.DATASETS"),
      AllOf(HasSubstr(R"("dataset", "docs", "shape", "objects")"),
            HasSubstr(R"("dataset", "rows", "shape", "rows", "backend", "rocksdb", "max_versions", (0))")));
}

// ---- connection and server ----

TEST_F(ConnectionCommandsTest, AreAnsweredAsRedisDoes) {
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_EQ(Do("ping hello"), "\"hello\"");
  EXPECT_THAT(Do("PING a b"), HasSubstr("-ERR wrong number of arguments"));
  EXPECT_EQ(Do("ECHO "), "\"\"");
  EXPECT_EQ(Do("SELECT 0"), "OK");
  EXPECT_THAT(Do("SELECT 1"), HasSubstr("-ERR DB index is out of range"));
  EXPECT_THAT(Do("SELECT x"), HasSubstr("-ERR value is not an integer"));
  EXPECT_EQ(Do("CLIENT GETNAME"), "nil");
  EXPECT_EQ(Do("CLIENT SETNAME me"), "OK");
  EXPECT_EQ(Do("CLIENT GETNAME"), "\"me\"");
  EXPECT_THAT(Do({"CLIENT", "SETNAME", "a b"}), HasSubstr("-ERR Client names cannot contain spaces"));
  EXPECT_EQ(Do("CLIENT SETINFO LIB-NAME tests"), "OK");
  EXPECT_EQ(Do("CLIENT SETINFO LIB-VER 1"), "OK");
  EXPECT_THAT(Do("CLIENT SETINFO LIB-COLOR red"), HasSubstr("-ERR Unrecognized option"));
  EXPECT_THAT(Do("CLIENT INFO"),
              AllOf(HasSubstr("name=me"), HasSubstr("lib-name=tests lib-ver=1"), HasSubstr("addr=ipv4:")));
  EXPECT_THAT(Do("CLIENT KILL x"), HasSubstr("-ERR CLIENT has the subcommands"));
  const std::string id = Do("CLIENT ID");
  EXPECT_EQ(id.front(), '(');
  EXPECT_NE(RespClient(address()).Do("CLIENT ID"), id);
  EXPECT_THAT(Do("NONSENSE secret"),
              AllOf(HasSubstr("-ERR unknown command 'NONSENSE'"), Not(HasSubstr("secret"))));
  EXPECT_THAT(Do("GET"), HasSubstr("-ERR wrong number of arguments for 'get' command"));
  EXPECT_THAT(Do("GET a b"), HasSubstr("-ERR wrong number of arguments for 'get' command"));
  EXPECT_THAT(Do("AUTH anything"), HasSubstr("without any password configured"));
  EXPECT_EQ(Do("QUIT"), "OK");
  EXPECT_TRUE(client_->IsClosed());
}

TEST_F(ConnectionCommandsTest, ANameIsShortAndWithoutBlanks) {
  const std::string longest(64, 'n');
  EXPECT_EQ(Do("CLIENT SETNAME " + longest), "OK");
  EXPECT_EQ(Do("CLIENT SETNAME " + longest + "n"),
            "-ERR Client names have at most 64 bytes, this one has 65");
  EXPECT_EQ(Do("HELLO 3 SETNAME " + longest + "n"),
            "-ERR Client names have at most 64 bytes, this one has 65");
  EXPECT_THAT(Do({"HELLO", "3", "SETNAME", "a\nb"}), HasSubstr("-ERR Client names cannot contain spaces"));
  EXPECT_EQ(Do("CLIENT GETNAME"), "\"" + longest + "\"") << "what is refused changes nothing";
}

TEST_F(ConnectionCommandsTest, CommandTakesAtMostAThousandNames) {
  std::vector<std::string> words(1'002, "get");
  words[0] = "COMMAND";
  for (const char* what : {"INFO", "DOCS"}) {
    words[1] = what;
    EXPECT_THAT(Do(words), StartsWith("[")) << what;
    words.emplace_back("get");
    EXPECT_EQ(Do(words), "-ERR COMMAND: 1001 names were given, and the limit is 1000; use several commands")
        << what;
    words.pop_back();
  }
}

TEST_F(ConnectionCommandsTest, HelloChangesTheVersionBothWays) {
  EXPECT_THAT(Do("HELLO"), StartsWith(R"(["server", "kvstore", "version", ")"));
  EXPECT_THAT(Do("HELLO 4"), HasSubstr("-NOPROTO unsupported protocol version"));
  EXPECT_THAT(Do("HELLO x"), HasSubstr("-NOPROTO"));
  EXPECT_THAT(Do("HELLO 3 SETNAME me"), StartsWith(R"({"server": "kvstore", "version": ")"));
  EXPECT_EQ(Do("CLIENT GETNAME"), "\"me\"");
  EXPECT_EQ(Do("GET rows:none"), "nil");
  EXPECT_THAT(Do("INFO"), StartsWith("=\"txt:# Server"));
  EXPECT_THAT(Do("HELLO 2"), StartsWith("["));
  EXPECT_THAT(Do("HELLO 3 NONSENSE"), HasSubstr("-ERR Syntax error in HELLO"));
  EXPECT_THAT(Do("INFO"), AllOf(StartsWith("\"# Server"), HasSubstr("redis_version:7"),
                                HasSubstr("connected_clients:1")));
}

TEST_F(ConnectionCommandsTest, CommandDescribesAllThatThereAre) {
  const size_t count = server::resp::AllCommands().size();
  EXPECT_EQ(Do("COMMAND COUNT"), "(" + std::to_string(count) + ")");
  const std::string list = Do("COMMAND LIST");
  const std::string docs = Do("COMMAND DOCS");
  const std::string all = Do("COMMAND");
  EXPECT_EQ(all, Do("COMMAND INFO"));
  for (const server::resp::Command* command : server::resp::AllCommands()) {
    const std::string name = "\"" + std::string(command->name) + "\"";
    EXPECT_THAT(list, HasSubstr(name));
    EXPECT_THAT(docs, HasSubstr(name + ", [\"summary\", \"" + std::string(command->summary) + "\""));
    EXPECT_THAT(all, HasSubstr("[" + name + ", (" + std::to_string(command->arity) + "), "));
  }
  EXPECT_EQ(Do("COMMAND INFO get nonsense"),
            R"([["get", (2), [readonly], (1), (1), (1), [], [], [], []], nil])");
  EXPECT_THAT(Do("COMMAND INFO mset"), HasSubstr("[write], (1), (-1), (2)"));
  EXPECT_THAT(Do("COMMAND DOCS hset nonsense"), StartsWith(R"(["hset", ["summary")"));
  EXPECT_THAT(Do("COMMAND NONSENSE"), HasSubstr("-ERR COMMAND has the subcommands"));
}

TEST_F(ConnectionCommandsTest, WhatRedisHasAndThisHasNotIsRefusedWithWords) {
  for (const char* command : {"MULTI",
                              "EXPIRE rows:k 1",
                              "SUBSCRIBE c",
                              "EVAL x 0",
                              "CLUSTER SLOTS",
                              "KEYS *",
                              "LPUSH k v",
                              "SADD k v",
                              "CONFIG GET save",
                              "FLUSHALL",
                              "TTL rows:k",
                              "HRANDFIELD rows:k",
                              "SETBIT rows:k 0 1",
                              "LCS rows:k rows:l",
                              "ZCOUNT links:1 0 1",
                              "ZPOPMIN links:1",
                              "ZUNION 1 links:1",
                              "ZRANGEBYLEX links:1 - +",
                              "OBJECT HELP",
                              "DUMP rows:k",
                              "XSETID rows:k:c 1"})
    EXPECT_THAT(Do(command), AllOf(StartsWith("-ERR '"), HasSubstr("is not supported: "))) << command;
}

}  // namespace
}  // namespace kvstore::testing
