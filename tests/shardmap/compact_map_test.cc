#include "shardmap/compact_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "coordination/zookeeper.h"
#include "shardmap/shard_map.h"
#include "tests/shardmap/large_maps.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::FullSizeMap;
using Json = nlohmann::json;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

/// Returns so many entries of two shards each, with a gap after each.
ShardMap MapOf(uint32_t entries) {
  std::vector<ShardRange> ranges;
  for (uint32_t i = 0; i < entries; ++i) {
    ranges.push_back({3 * i, 3 * i + 1, Host{.name = fmt::format("MySQL{:03}A", i % 200)},
                      Host{.name = fmt::format("MySQL{:03}B", i % 200), .port = 3307}});
  }
  return *ShardMap::Create(std::move(ranges));
}

/// Returns a text as PackRanges would pack it.
std::string Pack(const std::string& text) {
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 1));
  return absl::Base64Escape(frame);
}

TEST(CompactMap, AMapOfFullSizeFitsTwiceIntoATransactionOfZooKeeperAndComesBack) {
  const ShardMap map = FullSizeMap();
  const std::string stored = map.ToStored();
  EXPECT_TRUE(ShardMap::IsCompact(stored));
  // The history has it once more.
  EXPECT_LT(2 * stored.size(), ZooKeeper::kMaxNodeBytes);
  EXPECT_LT(stored.size(), size_t{280} << 10);
  ASSERT_OK_AND_ASSIGN(const ShardMap again, ShardMap::Parse(stored));
  EXPECT_TRUE(again == map);
  EXPECT_EQ(again.open_shards(), 65'536u);
  // People get, and give, the text.
  const std::string text = map.ToJson();
  EXPECT_FALSE(ShardMap::IsCompact(text));
  ASSERT_OK_AND_ASSIGN(const ShardMap edited, ShardMap::Parse(text));
  EXPECT_TRUE(edited == map);
}

// As moves leave it: a host is in one pair.
TEST(CompactMap, AMapOfManyRangesOnFewPairsTakesHalfAsMuch) {
  std::vector<ShardRange> ranges;
  const ShardMap full = FullSizeMap();
  for (const ShardRange& range : full.ranges()) {
    const ShardRange& like = full.ranges()[range.first * 7919U % 500U];
    ranges.push_back({range.first, range.last, like.master, like.slave});
  }
  ASSERT_OK_AND_ASSIGN(const ShardMap map, ShardMap::Create(std::move(ranges)));
  EXPECT_LT(map.ToStored().size(), size_t{140} << 10);
  ASSERT_OK_AND_ASSIGN(const ShardMap again, ShardMap::Parse(map.ToStored()));
  EXPECT_TRUE(again == map);
}

TEST(CompactMap, EachShardOfAMapOfFullSizeIsFound) {
  const ShardMap map = FullSizeMap();
  for (uint32_t shard = 0; shard <= ShardMap::kMaxShard; ++shard) {
    ASSERT_EQ(map.Find(shard), &map.ranges()[shard]);
  }
  EXPECT_EQ(map.Find(65'536), nullptr);
  // One range fewer, and there is a shard that is not open.
  std::vector<ShardRange> ranges(map.ranges().begin(), map.ranges().end());
  ranges.erase(ranges.begin() + 7);
  ASSERT_OK_AND_ASSIGN(const ShardMap fewer, ShardMap::Create(std::move(ranges)));
  EXPECT_EQ(fewer.Find(7), nullptr);
  EXPECT_EQ(fewer.Find(8)->first, 8u);
  EXPECT_EQ(fewer.Find(65'535)->first, 65'535u);
}

TEST(CompactMap, ASmallMapIsStoredAsPeopleReadIt) {
  const ShardMap small = MapOf(1'000);
  EXPECT_EQ(small.ToStored(), small.ToJson());
  const ShardMap large = MapOf(2'500);
  ASSERT_GT(large.ToJson().size(), ShardMap::kMaxPlainBytes);
  EXPECT_TRUE(ShardMap::IsCompact(large.ToStored()));
  ASSERT_OK_AND_ASSIGN(const ShardMap again, ShardMap::Parse(large.ToStored()));
  EXPECT_TRUE(again == large);
}

// Programs of before the compact form read an array of entries, and name the first field that they do not
// know, in the order of bytes.
TEST(CompactMap, AProgramThatDoesNotKnowTheFormTellsPeopleToUpgradeIt) {
  const Json stored = Json::parse(MapOf(2'500).ToStored());
  ASSERT_TRUE(stored.is_array());
  ASSERT_EQ(stored.size(), 1u);
  ASSERT_TRUE(stored[0].is_object());
  EXPECT_EQ(stored[0].begin().key(),
            "a compact shard map, which needs KVStore 0.1.0 or newer: upgrade this program");
}

TEST(CompactMap, AFormOfLaterIsRefusedWithTheAdviceToUpgrade) {
  EXPECT_THAT(ShardMap::Parse(R"([{"form": 2, "lists": 7}])"),
              FailsWith(kInvalid, "form: 2 is not known to this program, which reads form 1; upgrade it"));
  EXPECT_THAT(ShardMap::Parse(R"([{"form": "one"}])"), FailsWith(kInvalid, "form: \"one\" is not known"));
  EXPECT_THAT(ShardMap::Parse(R"([{"form": 1}])"), FailsWith(kInvalid, "packed: must be a string"));
  EXPECT_THAT(ShardMap::Parse(R"([{"form": 1, "packed": 5}])"),
              FailsWith(kInvalid, "packed: must be a string"));
}

TEST(CompactMap, HostileBytesAreRefusedAndSayWhy) {
  const std::string good =
      R"({"hosts":["a","b"],"masters":[0],"slaves":[1],"gaps":[9],"lengths":[1],"pairs":[0]})";
  ASSERT_OK(UnpackRanges(Pack(good)));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return Pack(text);
  };
  // Dropping an item must not take longer the more items its list has.
  std::string many = R"({"gaps":[)";
  for (int i = 0; i < 1'000'000; ++i) many += "1,";
  for (int i = 0; i < 1'500'000; ++i) many += "{},";
  many += "1]}";
  std::string cut = Pack(good);
  cut.resize(cut.size() / 8 * 4);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "is no zstd frame"},
      {"???", "is not base64"},
      {absl::Base64Escape("no frame"), "is no zstd frame"},
      {cut, "cannot be unpacked"},
      {Pack(std::string(kMaxUnpackedMapBytes + 1, ' ')), "the limit is 8388608"},
      {Pack("[]"), "is not a JSON object"},
      {Pack(std::string(1'000'000, '[')), "is not a JSON object"},
      {Pack("{}"), "hosts: must be a list"},
      {Pack(many), "hosts: must be a list"},
      {with("[9]", "7"), "gaps: must be a list"},
      {with("\"b\"", "[[[]]]"), "entry 0: has host 1, and there are 1 hosts"},  // what nests is dropped
      {with("\"a\"", "\"a b\""), "hosts: entry 0: host: 'a b' is not a host name"},
      {with("\"a\"", "1"), "hosts: entry 0 is not a string"},
      {with("[9]", "[9,9]"), "lengths has 1 entries, and gaps has 2"},
      {with("\"masters\":[0]", "\"masters\":[]"), "slaves has 1 entries, and masters has 0"},
      {with("[9]", "[-1]"), "gaps: entry 0 is not a number of 0..4294967295"},
      {with("[9]", "[4294967295]"), "after a gap of 4294967295 are not within 0..65535"},
      {with("\"lengths\":[1]", "\"lengths\":[0]"), "entry 0: 0 shards"},
      {with("\"lengths\":[1]", "\"lengths\":[65528]"),
       "65528 shards after a gap of 9 are not within 0..65535"},
      {with("\"slaves\":[1]", "\"slaves\":[2]"), "entry 0: has host 2, and there are 2 hosts"},
      {with("\"pairs\":[0]", "\"pairs\":[2]"), "entry 0: has pair 2, and there are 1 pairs"},
      {with("\"masters\":[0],\"slaves\":[1]", "\"masters\":[],\"slaves\":[]"),
       "entry 0: has pair 1, and there are 0 pairs"},
  };
  for (const auto& [packed, message] : bad) {
    EXPECT_THAT(UnpackRanges(packed), FailsWith(kInvalid, message)) << packed.substr(0, 80);
  }
  // A text that is packed well can still be no map.
  EXPECT_THAT(ShardMap::Parse(
                  Json::array({{{"form", 1}, {"packed", with("\"slaves\":[1]", "\"slaves\":[0]")}}}).dump()),
              FailsWith(kInvalid, "entry 0: slave: a is the master too"));
  EXPECT_THAT(
      ShardMap::Parse(
          Json::array(
              {{{"form", 1},
                {"packed",
                 Pack(R"({"hosts":[],"masters":[],"slaves":[],"gaps":[],"lengths":[],"pairs":[]})")}}})
              .dump()),
      FailsWith(kInvalid, "has no entries"));
}

}  // namespace
}  // namespace kvstore
