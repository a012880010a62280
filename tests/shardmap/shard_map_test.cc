#include "shardmap/shard_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kPublished[] = R"([{"range": [0, 511], "master": "MySQL001A", "slave": "MySQL001B"},
 {"range": [512, 1023], "master": "MySQL002B", "slave": "MySQL002A"},
 {"range": [3584, 4095], "master": "MySQL008A", "slave": "MySQL008B:3307"}]
)";

TEST(ShardMap, ReadsThePublishedForm) {
  ASSERT_OK_AND_ASSIGN(const ShardMap map, ShardMap::Parse(kPublished));
  EXPECT_EQ(map.ranges().size(), 3u);
  EXPECT_EQ(map.open_shards(), 1536u);
  EXPECT_EQ(map.ToJson(), kPublished);
  EXPECT_EQ(*ShardMap::Parse(map.ToJson()), map);
}

TEST(ShardMap, FindsTheHostsOfAShard) {
  ASSERT_OK_AND_ASSIGN(const ShardMap map, ShardMap::Parse(kPublished));
  EXPECT_EQ(map.Find(0)->master.name, "MySQL001A");
  EXPECT_EQ(map.Find(511)->slave.name, "MySQL001B");
  EXPECT_EQ(map.Find(512)->master.name, "MySQL002B");
  EXPECT_EQ(map.Find(4095)->slave, (Host{"MySQL008B", 3307}));
  // Shards in gaps are not open, nor are those beyond the last range.
  for (const uint32_t shard : {1024u, 3583u, 4096u, 65535u, 65536u, UINT32_MAX})
    EXPECT_EQ(map.Find(shard), nullptr);
}

TEST(ShardMap, HoldsTheExtremes) {
  ASSERT_OK_AND_ASSIGN(const ShardMap map,
                       ShardMap::Parse(R"([{"range":[0,65535],"master":"a:1","slave":"a:65535"}])"));
  EXPECT_EQ(map.open_shards(), 65536u);
  EXPECT_NE(map.Find(65535), nullptr);
  EXPECT_OK(ShardMap::Parse(R"([{"range":[7,7],"master":"10.0.0.1","slave":"db-1.internal_net"}])"));
}

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ShardMap, RefusesBadMapsAndSaysWhichEntryAndWhy) {
  const std::string good = R"({"range":[0,511],"master":"A","slave":"B"})";
  const auto second = [&good](const std::string& entry) { return "[" + good + "," + entry + "]"; };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "not JSON"},
      {"[", "not JSON"},
      {"[\xE2\x80\x9Crange\xE2\x80\x9D]", "not JSON"},  // typographic quotes
      {"[]", "has no entries"},
      {"{}", "must be an array of entries, not object"},
      {"null", "must be an array"},
      {second("7"), "entry 1: must be an object, not number"},
      {second(R"({"master":"A","slave":"B"})"), "entry 1: range: is missing"},
      {second(R"({"range":[512],"master":"A","slave":"B"})"), "entry 1: range: must be [first, last]"},
      {second(R"({"range":"512-1023","master":"A","slave":"B"})"), "entry 1: range: must be [first, last]"},
      {second(R"({"range":[512,65536],"master":"A","slave":"B"})"),
       "entry 1: range: 65536 is not a shard number"},
      {second(R"({"range":[-1,600],"master":"A","slave":"B"})"), "entry 1: range: -1 is not a shard number"},
      {second(R"({"range":[512.0,600],"master":"A","slave":"B"})"),
       "entry 1: range: 512.0 is not a shard number"},
      {second(R"({"range":["512",600],"master":"A","slave":"B"})"), "is not a shard number"},
      {second(R"({"range":[1023,512],"master":"A","slave":"B"})"), "entry 1: range: [1023, 512] is reversed"},
      {second(R"({"range":[511,1023],"master":"A","slave":"B"})"),
       "entry 1: range: [511, 1023] begins before the end"},
      {second(R"({"range":[0,511],"master":"A","slave":"B"})"),
       "entry 1: range: [0, 511] begins before the end"},
      {"[" + std::string(R"({"range":[512,600],"master":"A","slave":"B"},)") + good + "]",
       "ranges are in order"},
      {second(R"({"range":[512,600],"master":"A"})"), "entry 1: slave: is missing"},
      {second(R"({"range":[512,600],"slave":"A"})"), "entry 1: master: is missing"},
      {second(R"({"range":[512,600],"master":7,"slave":"B"})"), "entry 1: master: must be a string"},
      {second(R"({"range":[512,600],"master":"","slave":"B"})"), "entry 1: master: \"\" is not a host name"},
      {second(R"({"range":[512,600],"master":"a b","slave":"B"})"), "is not a host name"},
      {second(R"({"range":[512,600],"master":"A:0","slave":"B"})"), "is not a host name"},
      {second(R"({"range":[512,600],"master":"A:65536","slave":"B"})"), "is not a host name"},
      {second(R"({"range":[512,600],"master":"A:1:2","slave":"B"})"), "is not a host name"},
      {second(R"({"range":[512,600],"master":"A:","slave":"B"})"), "is not a host name"},
      {second(R"({"range":[512,600],"master":"A","slave":"A:3306"})"), "entry 1: slave: A is the master too"},
      {second(R"({"range":[512,600],"master":"A","slave":"B","weight":1})"),
       "entry 1: weight: unknown field"},
      {second(R"({"range":[512,600],"master":"A","master":"C","slave":"B"})"),
       "the field 'master' is given twice"},
      {std::string(600, '[') + std::string(600, ']'), "nests more than"},
      {"[" + Repeated("{},", 65'536) + "{}]", "more than 65536 entries"},
      // Entries that are objects take no longer the more there are before them.
      {"[[" + Repeated("{},", 5'000'000) + "{}]]", "entry 0: must be an object, not array"},
      {std::string(ShardMap::kMaxTextBytes + 1, ' '), "the limit is 16777216"},
  };
  for (const auto& [text, message] : bad) {
    EXPECT_THAT(ShardMap::Parse(text), FailsWith(kInvalid, message)) << text.substr(0, 200);
  }
}

RC_GTEST_PROP(ShardMapProperty, LookUpsAgreeWithTheRanges, ()) {
  std::string text;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  uint32_t next = 0;
  for (int i = *rc::gen::inRange(1, 20); i > 0 && next < 60'000; --i) {
    const uint32_t first = next + *rc::gen::inRange(0u, 100u);
    const uint32_t last = first + *rc::gen::inRange(0u, 3000u);
    text += (text.empty() ? "[" : ",") + std::string("{\"range\":[") + std::to_string(first) + "," +
            std::to_string(last) + "],\"master\":\"m" + std::to_string(i) + "\",\"slave\":\"s\"}";
    ranges.emplace_back(first, last);
    next = last + 1;
  }
  const auto map = ShardMap::Parse(text + "]");
  RC_ASSERT(map.ok());
  RC_ASSERT((*ShardMap::Parse(map->ToJson()) == *map));
  for (int i = 0; i < 100; ++i) {
    const uint32_t shard = *rc::gen::inRange(0u, 65'536u);
    const ShardRange* found = map->Find(shard);
    bool open = false;
    for (const auto& [first, last] : ranges) open = open || (first <= shard && shard <= last);
    RC_ASSERT((found != nullptr) == open);
    RC_ASSERT((found == nullptr || (found->first <= shard && shard <= found->last)));
  }
}

RC_GTEST_PROP(ShardMapProperty, AnyTextIsRefusedOrComesBack, (const std::string& text)) {
  const auto map = ShardMap::Parse(text);
  if (map.ok()) RC_ASSERT((*ShardMap::Parse(map->ToJson()) == *map));
}

}  // namespace
}  // namespace kvstore
