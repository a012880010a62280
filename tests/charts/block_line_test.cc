#include "charts/block_line.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kvstore::charts {
namespace {

using Values = std::vector<std::optional<double>>;

std::string Line(const Values& values, size_t width = 80) { return BlockLine(values, width); }

TEST(BlockLine, GoesFromTheLeastToTheGreatest) {
  EXPECT_EQ(Line({1, 2, 3, 4, 5, 6, 7, 8}), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Line({8, 1}), "█▁");
  EXPECT_EQ(Line({-10, 0, 10}), "▁▅█") << "zero is in the middle";
}

TEST(BlockLine, ValuesThatAreMissingAreGaps) {
  EXPECT_EQ(Line({1, std::nullopt, 2}), "▁ █");
  EXPECT_EQ(Line({std::nullopt, std::nullopt}), "  ");
  EXPECT_EQ(Line({}), "");
}

TEST(BlockLine, OneHeightIsInTheMiddle) {
  EXPECT_EQ(Line({7}), "▄");
  EXPECT_EQ(Line({0, 0, 0}), "▄▄▄");
}

TEST(BlockLine, NeighboursShareACharacterThatShowsTheGreatest) {
  EXPECT_EQ(Line({1, 8, 1, 1, 1, 1}, 3), "█▁▁");
  EXPECT_EQ(Line({1, std::nullopt, std::nullopt, std::nullopt, std::nullopt, 2}, 3), "▁ █");
  EXPECT_EQ(Line({1, 2, 3}, 1), "▄");
  // 5 values in 3 characters: none is lost, whichever it is.
  for (size_t peak = 0; peak < 5; ++peak) {
    Values values(5, 1.0);
    values[peak] = 9;
    EXPECT_NE(Line(values, 3).find("█"), std::string::npos) << peak;
  }
}

TEST(BlockLine, TheGreatestNumbersThereAre) {
  constexpr double kMost = std::numeric_limits<double>::max();
  EXPECT_EQ(Line({-kMost, 0, kMost}), "▁▅█");
}

}  // namespace
}  // namespace kvstore::charts
