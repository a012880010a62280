#include "shardmap/diff.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace kvstore {
namespace {

/// Makes a map of "first-last master slave" entries.
ShardMap Map(const std::vector<std::tuple<int, int, std::string, std::string>>& entries) {
  std::string text = "[";
  for (const auto& [first, last, master, slave] : entries) {
    text += (text.size() > 1 ? "," : "") + std::string("{\"range\":[") + std::to_string(first) + "," +
            std::to_string(last) + "],\"master\":\"" + master + "\",\"slave\":\"" + slave + "\"}";
  }
  return ShardMap::Parse(text + "]").value();
}

std::string Text(const ShardMap& before, const ShardMap& after) {
  std::string text;
  for (const ShardChange& change : Diff(before, after)) text += change.ToString() + "\n";
  return text;
}

TEST(ShardMapDiff, NamesWhatAnOperatorDid) {
  const ShardMap before = Map({{0, 511, "A", "B"}, {512, 1023, "C", "D"}, {2000, 2000, "E", "F"}});
  const ShardMap after = Map({{0, 255, "A", "B"},
                              {256, 511, "G", "H"},
                              {512, 767, "D", "C"},
                              {768, 1023, "C", "I"},
                              {1024, 1279, "G", "H"}});
  EXPECT_EQ(Text(before, after),
            "shards 256..511: moved from A (slave B) to G (slave H)\n"
            "shards 512..767: D (slave C) promoted to master, was C (slave D)\n"
            "shards 768..1023: new slave I of C, was D\n"
            "shards 1024..1279: opened on G (slave H)\n"
            "shard 2000: closed, were on E (slave F)\n");
}

TEST(ShardMapDiff, EntriesThatAreSplitOrJoinedAreNoChange) {
  const ShardMap whole = Map({{0, 511, "A", "B"}});
  const ShardMap split = Map({{0, 99, "A", "B"}, {100, 511, "A", "B"}});
  EXPECT_TRUE(Diff(whole, split).empty());
  EXPECT_TRUE(Diff(split, whole).empty());
  EXPECT_TRUE(Diff(whole, whole).empty());
  // Nor do they cut a change in two.
  EXPECT_EQ(Diff(split, Map({{0, 511, "C", "D"}})).size(), 1u);
}

RC_GTEST_PROP(ShardMapDiffProperty, NamesEachShardThatChangedOnce, ()) {
  const auto draw = [] {
    std::vector<std::tuple<int, int, std::string, std::string>> entries;
    int next = *rc::gen::inRange(0, 3);
    do {
      const int last = next + *rc::gen::inRange(0, 6);
      entries.emplace_back(next, last, std::string(1, static_cast<char>('a' + *rc::gen::inRange(0, 3))), "z");
      next = last + 1 + *rc::gen::inRange(0, 2);
    } while (next < 30);
    return Map(entries);
  };
  const ShardMap before = draw();
  const ShardMap after = draw();
  const auto changes = Diff(before, after);
  for (uint32_t shard = 0; shard < 40; ++shard) {
    const ShardRange* was = before.Find(shard);
    const ShardRange* is = after.Find(shard);
    const bool same = (was == nullptr) == (is == nullptr) && (was == nullptr || was->master == is->master);
    int named = 0;
    for (const ShardChange& change : changes) named += change.first <= shard && shard <= change.last ? 1 : 0;
    RC_ASSERT(named == (same ? 0 : 1));
  }
}

}  // namespace
}  // namespace kvstore
