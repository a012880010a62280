#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kvstore_api/limits.h"
#include "tests/server/resp/resp_fixture.h"

/// Mappings as sorted sets, and objects as JSON documents.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SortedSetTest : public RespTest {};
class JsonTest : public RespTest {
 protected:
  /// Returns the key of a new object.
  std::string Create(const std::string& document) {
    const std::string id = Do({"KV.CREATE", "docs", document});
    EXPECT_THAT(id, StartsWith("\"")) << id;
    return "docs:" + id.substr(1, id.size() - 2);
  }
};

// ---- sorted sets ----

TEST_F(SortedSetTest, TheListOfAnIdIsASortedSet) {
  EXPECT_EQ(Do("ZADD links:1 10 100 20 200 30 300"), "(3)");
  EXPECT_EQ(Do("ZADD links:1 25 100 40 400"), "(1)") << "one is new, one has another score";
  EXPECT_EQ(Do("ZCARD links:1"), "(4)");
  EXPECT_EQ(Do("ZCARD links:2"), "(0)");
  EXPECT_EQ(Do("ZSCORE links:1 100"), "\"25\"");
  EXPECT_EQ(Do("ZSCORE links:1 101"), "nil");
  EXPECT_EQ(Do("ZSCORE links:1 abc"), "nil");
  EXPECT_EQ(Do("ZRANGE links:1 0 -1"), R"(["200", "100", "300", "400"])");
  EXPECT_EQ(Do("ZREVRANGE links:1 0 1 WITHSCORES"), R"(["400", "40", "300", "30"])");
  EXPECT_EQ(Do("ZREM links:1 100 999 abc"), "(1)");
  EXPECT_EQ(Do("ZRANGE links:1 0 -1 WITHSCORES"), R"(["200", "20", "300", "30", "400", "40"])");
  EXPECT_EQ(Do("HELLO 3").front(), '{');
  EXPECT_EQ(Do("ZRANGE links:1 0 0 WITHSCORES"), R"([["200", ,20]])");
  EXPECT_EQ(Do("ZSCORE links:1 200"), ",20");
}

TEST_F(SortedSetTest, AnIdHasAtMostTwentyDigits) {
  EXPECT_EQ(Do("ZADD links:00000000000000000001 1 1"), "(1)");
  EXPECT_THAT(Do("ZSCAN links:000000000000000000001 0"), HasSubstr("-ERR key: it must be dataset:id"));
  EXPECT_THAT(Do({"ZSCAN", "links:" + std::string(1'000'000, '0') + "1", "0"}), HasSubstr("-ERR key: "));
}

TEST_F(SortedSetTest, PlacesCountFromBothEnds) {
  for (int i = 0; i < 5; ++i) Do("ZADD links:1 " + std::to_string(i) + " " + std::to_string(i));
  const std::vector<std::pair<std::string, std::string>> ranges = {
      {"0 -1", R"(["0", "1", "2", "3", "4"])"},
      {"1 3", R"(["1", "2", "3"])"},
      {"-2 -1", R"(["3", "4"])"},
      {"-100 1", R"(["0", "1"])"},
      {"3 100", R"(["3", "4"])"},
      {"1 -3", R"(["1", "2"])"},
      {"3 1", "[]"},
      {"5 9", "[]"},
      {"0 -6", "[]"},
      {"-9223372036854775808 9223372036854775807", R"(["0", "1", "2", "3", "4"])"},
      {"0 -1 REV", R"(["4", "3", "2", "1", "0"])"},
      {"-2 -1 REV", R"(["1", "0"])"},
  };
  for (const auto& [range, expected] : ranges) EXPECT_EQ(Do("ZRANGE links:1 " + range), expected) << range;
  EXPECT_THAT(Do("ZRANGE links:1 a 1"), HasSubstr("-ERR value is not an integer"));
  EXPECT_THAT(Do("ZRANGE links:1 0 1 LIMIT 0 1"), HasSubstr("LIMIT is only supported"));
  EXPECT_THAT(Do("ZRANGE links:1 [a [b BYLEX"), HasSubstr("-ERR BYLEX is not supported"));
}

TEST_F(SortedSetTest, RangesOfScoresHaveOpenAndClosedEnds) {
  for (int i = 1; i <= 5; ++i) Do("ZADD links:1 " + std::to_string(10 * i) + " " + std::to_string(i));
  const std::vector<std::pair<std::string, std::string>> ranges = {
      {"-inf +inf", R"(["1", "2", "3", "4", "5"])"},
      {"(-inf (+inf", R"(["1", "2", "3", "4", "5"])"},
      {"+20 (+40", R"(["2", "3"])"},
      {"20 40", R"(["2", "3", "4"])"},
      {"(20 (40", R"(["3"])"},
      {"19.5 (40", R"(["2", "3"])"},
      {"(19.5 40.5", R"(["2", "3", "4"])"},
      {"-5 10", R"(["1"])"},
      {"51 +inf", "[]"},
      {"40 20", "[]"},
      {"+inf -inf", "[]"},
      {"1e1 2E1", R"(["1", "2"])"},
      {"-inf +inf LIMIT 1 2", R"(["2", "3"])"},
      {"-inf +inf LIMIT 1 -1", R"(["2", "3", "4", "5"])"},
      {"20 +inf LIMIT 1 2 WITHSCORES", R"(["3", "30", "4", "40"])"},
      {"-inf +inf LIMIT 0 0", "[]"},
      {"-inf +inf LIMIT -1 5", "[]"},
      {"0 9223372036854775807", R"(["1", "2", "3", "4", "5"])"},
  };
  for (const auto& [range, expected] : ranges)
    EXPECT_EQ(Do("ZRANGEBYSCORE links:1 " + range), expected) << range;
  EXPECT_EQ(Do("ZREVRANGEBYSCORE links:1 40 20"), R"(["4", "3", "2"])");
  EXPECT_EQ(Do("ZREVRANGEBYSCORE links:1 +inf (20 LIMIT 1 1"), R"(["4"])");
  EXPECT_EQ(Do("ZRANGE links:1 20 40 BYSCORE"), R"(["2", "3", "4"])");
  EXPECT_EQ(Do("ZRANGE links:1 40 (20 BYSCORE REV LIMIT 0 1"), R"(["4"])");
  EXPECT_THAT(Do("ZRANGEBYSCORE links:1 nan 5"), HasSubstr("-ERR min or max is not a float"));
}

TEST_F(SortedSetTest, ALongListIsReadByPagesAndScannedOnce) {
  Router& router = served_->router();
  for (uint64_t i = 0; i < 12'000; ++i) ASSERT_OK(router.AddMapping("links", 1, i, 2 * i));
  EXPECT_EQ(Do("ZCARD links:1"), "(12000)");
  EXPECT_THAT(Do("ZRANGE links:1 0 -1"), HasSubstr(R"("11999"])"));
  EXPECT_EQ(Do("ZRANGE links:1 11000 11001"), R"(["11000", "11001"])");
  EXPECT_EQ(Do("ZRANGEBYSCORE links:1 4 +inf LIMIT 11000 2"), R"(["11002", "11003"])");
  EXPECT_EQ(Do("ZREVRANGEBYSCORE links:1 23996 -inf LIMIT 11000 1"), R"(["998"])");
  std::string cursor = "0";
  size_t found = 0;
  int parts = 0;
  do {
    const std::string part = Do("ZSCAN links:1 " + cursor + " COUNT 1000 MATCH *0");
    cursor = part.substr(2, part.find('"', 2) - 2);
    // Each member has a score, and both have quotes.
    found += static_cast<size_t>(
                 std::count(part.begin() + static_cast<std::ptrdiff_t>(part.find(", [")), part.end(), '"')) /
             4;
    ++parts;
  } while (cursor != "0");
  EXPECT_EQ(found, 1'200u) << "each member that ends in 0";
  EXPECT_EQ(parts, 12);
  EXPECT_EQ(Do("DEL links:1"), "(1)");
  EXPECT_EQ(Do("ZCARD links:1"), "(0)");
}

TEST_F(SortedSetTest, ScoresAndMembersAreWholeNumbers) {
  EXPECT_EQ(Do("ZADD links:1 1.7E12 5"), "(1)") << "as some clients write whole numbers";
  EXPECT_EQ(Do("ZSCORE links:1 5"), "\"1700000000000\"");
  EXPECT_EQ(Do("ZADD links:1 9223372036854775807 4611686018427387903"), "(1)");
  EXPECT_EQ(Do("ZSCORE links:1 4611686018427387903"), "\"9223372036854775807\"");
  EXPECT_EQ(Do("ZADD links:1 +7 6"), "(1)");
  EXPECT_EQ(Do("ZSCORE links:1 6"), "\"7\"");
  for (const char* pair : {"1.5 1", "-1 1", "inf 1", "+inf 1", "9223372036854775808 1", "1e19 1"})
    EXPECT_THAT(Do("ZADD links:1 " + std::string(pair)), HasSubstr("-ERR a score is the sequence")) << pair;
  for (const char* pair : {"nan 1", "abc 1", "5x 1", "+-5 1", "++5 1", "+ 1"})
    EXPECT_THAT(Do("ZADD links:1 " + std::string(pair)), HasSubstr("-ERR value is not a valid float"))
        << pair;
  for (const char* pair : {"1 abc", "1 -1", "1 4611686018427387904"})
    EXPECT_THAT(Do("ZADD links:1 " + std::string(pair)), HasSubstr("-ERR a member is an ID")) << pair;
  EXPECT_THAT(Do("ZADD links:1 5 50 x 60"), HasSubstr("-ERR value is not a valid float"));
  EXPECT_EQ(Do("ZSCORE links:1 50"), "nil") << "nothing is added if a pair is wrong";
  for (const char* flag : {"NX", "XX", "GT", "LT", "CH", "INCR"})
    EXPECT_THAT(Do("ZADD links:1 " + std::string(flag) + " 1 1"), HasSubstr("are not supported")) << flag;
  EXPECT_THAT(Do("ZADD links:abc 1 1"), HasSubstr("-ERR key: it must be dataset:id"));
  EXPECT_THAT(Do("ZADD links:4611686018427387904 1 1"), HasSubstr("-ERR key: "));
}

TEST_F(SortedSetTest, ManyMembersAtOnceAreLeftToAWorker) {
  std::vector<std::string> words = {"ZADD", "links:1"};
  std::vector<std::string> remove = {"ZREM", "links:1"};
  for (int i = 0; i < 500; ++i) {
    words.push_back(std::to_string(i));
    words.push_back(std::to_string(i));
    remove.push_back(std::to_string(i));
  }
  EXPECT_EQ(Do(words), "(500)");
  EXPECT_EQ(Do(words), "(0)");
  EXPECT_EQ(Do(remove), "(500)");
}

// ---- JSON ----

TEST_F(JsonTest, AnObjectIsADocument) {
  const std::string key = Create(R"({"title":"chair","n":1})");
  EXPECT_EQ(Do("JSON.GET " + key), R"("{"title":"chair","n":1}")");
  EXPECT_EQ(Do("JSON.GET " + key + " $"), R"("[{"title":"chair","n":1}]")");
  EXPECT_EQ(Do("JSON.GET " + key + " ."), R"("{"title":"chair","n":1}")");
  EXPECT_EQ(Do({"JSON.MERGE", key, "$", R"({"n":null,"m":2})"}), "OK");
  EXPECT_EQ(Do("JSON.GET " + key), R"("{"m":2,"title":"chair"}")");
  EXPECT_EQ(Do({"JSON.SET", key, "$", R"({"other":true})"}), "OK");
  EXPECT_EQ(Do("JSON.GET " + key), R"("{"other":true}")");
  EXPECT_EQ(Do({"JSON.SET", key, "$", "{}", "NX"}), "nil");
  EXPECT_EQ(Do({"JSON.SET", key, "$", "{}", "XX"}), "OK");
  EXPECT_EQ(Do("JSON.DEL " + key), "(1)");
  EXPECT_EQ(Do("JSON.DEL " + key + " $"), "(0)");
  EXPECT_EQ(Do("JSON.GET " + key), "nil");
  EXPECT_EQ(Do({"JSON.SET", key, "$", "{}", "XX"}), "nil");
  EXPECT_THAT(Do({"JSON.SET", key, "$", "{}"}), HasSubstr("KV.CREATE"));
  EXPECT_THAT(Do({"JSON.MERGE", key, "$", "{}"}), HasSubstr("KV.CREATE"));
}

TEST_F(JsonTest, ManyDocumentsAreReadAtOnce) {
  const std::string first = Create(R"({"n":1})");
  const std::string second = Create(R"({"n":2})");
  ASSERT_EQ(Do("JSON.DEL " + second), "(1)");
  const std::string third = Create(R"({"n":3})");
  EXPECT_EQ(Do("JSON.MGET " + first + " " + second + " " + third + " $"),
            R"(["[{"n":1}]", nil, "[{"n":3}]"])");
  EXPECT_EQ(Do("JSON.MGET " + third + " ."), R"(["{"n":3}"])");
  EXPECT_THAT(Do("JSON.MGET " + third + " $.n"), HasSubstr("-ERR the only path is $"));
  EXPECT_THAT(Do("JSON.MGET " + third + " rows:1 $"), HasSubstr("-WRONGTYPE"));
}

TEST_F(JsonTest, ANewObjectIsPlacedNearAnother) {
  const std::string key = Create("{}");
  const std::string id = key.substr(key.find(':') + 1);
  const std::string near = Do("KV.CREATE docs {} NEAR " + id);
  EXPECT_EQ(std::stoull(near.substr(1)) >> 46, std::stoull(id) >> 46) << "the same shard";
  EXPECT_THAT(Do("KV.CREATE docs {} NEAR abc"), HasSubstr("-ERR near: "));
  EXPECT_THAT(Do("KV.CREATE docs {} FAR 1"), HasSubstr("-ERR syntax error"));
  EXPECT_THAT(Do("KV.CREATE nowhere {}"), HasSubstr("-ERR dataset: there is none"));
}

TEST_F(JsonTest, WhatIsNoDocumentIsRefused) {
  const std::string key = Create(R"({"n":1})");
  for (const char* text : {"[1]", "5", "{", "{\"a\":}"}) {
    EXPECT_THAT(Do({"JSON.SET", key, "$", text}), HasSubstr("-ERR ")) << text;
    EXPECT_THAT(Do({"KV.CREATE", "docs", text}), HasSubstr("-ERR ")) << text;
    EXPECT_THAT(Do({"JSON.MERGE", key, "$", text}), HasSubstr("-ERR ")) << text;
  }
  EXPECT_EQ(Do("JSON.GET " + key), R"("{"n":1}")");
  EXPECT_THAT(Do("JSON.GET " + key + " $.n"), HasSubstr("-ERR the only path is $"));
  EXPECT_THAT(Do("JSON.GET " + key + " INDENT 2 $"), HasSubstr("-ERR INDENT"));
  EXPECT_THAT(Do("JSON.GET docs:5"), HasSubstr("-ERR object_id: "));
  EXPECT_THAT(Do("JSON.GET docs:abc"), HasSubstr("-ERR key: "));
  EXPECT_THAT(Do("JSON.GET nowhere:5"), HasSubstr("-ERR dataset: there is none"));
}

}  // namespace
}  // namespace kvstore::testing
