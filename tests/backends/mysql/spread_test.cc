#include "backends/mysql/fleet/spread.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/shift_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::mysql {
namespace {

ShardMap Map(const std::string& text) { return *ShardMap::Parse(text); }

const char kTwoRanges[] =
    R"([{"range": [0, 3], "master": "A", "slave": "B"}, {"range": [10, 13], "master": "C", "slave": "D"}])";

std::map<uint32_t, int> Choices(const Spread& spread, uint64_t numbers) {
  std::map<uint32_t, int> times;
  for (uint64_t i = 0; i < numbers; ++i) ++times[spread.Choose(i)];
  return times;
}

TEST(Spread, WithoutWeightsAllOpenShardsAreAlike) {
  const auto times = Choices(Spread(Map(kTwoRanges), {}), 8);
  EXPECT_EQ(times,
            (std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {10, 1}, {11, 1}, {12, 1}, {13, 1}}));
}

TEST(Spread, WeightsAreProportions) {
  const std::vector<ShardWeight> weights = {{0, 1, 0}, {2, 10, 3}};
  const auto times = Choices(Spread(Map(kTwoRanges), weights), 24);
  EXPECT_EQ(times, (std::map<uint32_t, int>{{2, 6}, {3, 6}, {10, 6}, {11, 2}, {12, 2}, {13, 2}}));
}

TEST(Spread, TheFirstWeightOfAShardCounts) {
  const std::vector<ShardWeight> weights = {{0, 0, 5}, {0, 65535, 0}};
  EXPECT_EQ(Choices(Spread(Map(kTwoRanges), weights), 5), (std::map<uint32_t, int>{{0, 5}}));
}

TEST(Spread, NoWeightAtAllIsEmpty) {
  const std::vector<ShardWeight> weights = {{0, 65535, 0}};
  EXPECT_TRUE(Spread(Map(kTwoRanges), weights).empty());
}

TEST(Spread, ShardsTellAllOfIt) {
  const std::vector<ShardWeight> weights = {{0, 1, 0}, {2, 10, 3}};
  const Spread spread(Map(kTwoRanges), weights);
  EXPECT_EQ(spread.Shards(), (ShardWeights{{2, 3, 3}, {10, 10, 3}, {11, 13, 1}}));
  EXPECT_EQ(Spread(spread.Shards()), spread);
}

TEST(Spreads, TellWhereANumberWentBefore) {
  const testing::TempDir dir;
  const auto same = [](const std::vector<uint32_t>& earlier) { return earlier.empty(); };
  {
    Spreads spreads(dir / "before", {{0, 1, 0}});
    EXPECT_EQ(spreads.current(), nullptr);
    spreads.SetMap(Map(R"([{"range": [0, 3], "master": "A", "slave": "B"}])"));
    EXPECT_EQ(spreads.current()->Choose(0), 2u);
    EXPECT_TRUE(same(spreads.EarlierShards(0)));
    // A change of a master does not change the spread.
    spreads.SetMap(Map(R"([{"range": [0, 3], "master": "B", "slave": "A"}])"));
    EXPECT_TRUE(same(spreads.EarlierShards(0)));
    spreads.SetWeights({{0, 2, 0}});
    EXPECT_EQ(spreads.current()->Choose(0), 3u);
    EXPECT_EQ(spreads.EarlierShards(0), (std::vector<uint32_t>{2}));
    EXPECT_TRUE(same(spreads.EarlierShards(1))) << "it is 3 either way";
    spreads.SetMap(Map(kTwoRanges));
    EXPECT_EQ(spreads.EarlierShards(2), (std::vector<uint32_t>{3, 2}));
  }
  // Earlier spreads are still there after a restart.
  Spreads again(dir / "before", {});
  again.SetMap(Map(kTwoRanges));
  EXPECT_EQ(again.current()->Choose(1), 1u);
  EXPECT_EQ(again.EarlierShards(1), (std::vector<uint32_t>{10, 3}));
  // They are forgotten after a day.
  ShiftWallClock(static_cast<int64_t>(Spreads::kKeptMs) + 60'000);
  EXPECT_TRUE(same(again.EarlierShards(1)));
  ShiftWallClock(0);
  std::ofstream(dir / "before") << "no number";
  Spreads damaged(dir / "before", {});
  damaged.SetMap(Map(kTwoRanges));
  EXPECT_TRUE(same(damaged.EarlierShards(1)));
}

TEST(Spreads, KeepTheNewestOfMany) {
  Spreads spreads({}, {});
  constexpr uint32_t kMany = Spreads::kKept + 4;
  // Each spread has one shard.
  for (uint32_t shard = 0; shard <= kMany; ++shard) {
    spreads.SetMap(Map(fmt::format(R"([{{"range": [{0}, {0}], "master": "A", "slave": "B"}}])", shard)));
  }
  std::vector<uint32_t> newest;
  for (uint32_t shard = kMany; newest.size() < Spreads::kKept;) newest.push_back(--shard);
  EXPECT_EQ(spreads.EarlierShards(0), newest);
}

}  // namespace
}  // namespace kvstore::mysql
