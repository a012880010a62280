#include "backends/mysql/spread.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/status_matchers.h"

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

}  // namespace
}  // namespace kvstore::mysql
