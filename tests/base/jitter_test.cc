#include "base/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kvstore {
namespace {

using std::chrono::milliseconds;

TEST(Jitter, AWaitDiffersByAFifthAtMost) {
  milliseconds least = milliseconds::max();
  milliseconds most{0};
  for (int i = 0; i < 10'000; ++i) {
    const milliseconds wait = Jittered(milliseconds(30'000));
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, milliseconds(24'000));
  EXPECT_LT(least, milliseconds(25'000));
  EXPECT_LE(most, milliseconds(36'000));
  EXPECT_GT(most, milliseconds(35'000));
  EXPECT_EQ(Jittered(milliseconds(0)), milliseconds(0));
}

TEST(Jitter, AWaitIsHalfOfItsEndAtLeast) {
  milliseconds least = milliseconds::max();
  milliseconds most{0};
  for (int i = 0; i < 10'000; ++i) {
    const milliseconds wait = EqualJitter(milliseconds(1'000));
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, milliseconds(500));
  EXPECT_LT(least, milliseconds(550));
  EXPECT_LE(most, milliseconds(1'000));
  EXPECT_GT(most, milliseconds(950));
  EXPECT_EQ(EqualJitter(milliseconds(0)), milliseconds(0));
}

TEST(Jitter, RetriesAreSpreadOverATimeThatDoublesUpToItsEnd) {
  for (const auto& [failures, end] :
       {std::pair{1U, 1'000}, {2U, 2'000}, {5U, 16'000}, {4'000'000'000U, 16'000}}) {
    milliseconds most{0};
    milliseconds least = milliseconds::max();
    for (int i = 0; i < 10'000; ++i) {
      const milliseconds wait = FullJitter(milliseconds(1'000), milliseconds(16'000), failures);
      most = std::max(most, wait);
      least = std::min(least, wait);
    }
    EXPECT_LE(most, milliseconds(end));
    EXPECT_GT(most, milliseconds(end * 9 / 10));
    EXPECT_LT(least, milliseconds(end / 10));
  }
}

}  // namespace
}  // namespace kvstore
