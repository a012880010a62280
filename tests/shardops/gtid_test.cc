#include "shardops/gtid.h"

#include <gtest/gtest.h>

/// Positions to which transactions are added.
namespace kvstore::shardops {
namespace {

TEST(GtidPosition, HasWhatWasAddedAndAllBeforeIt) {
  GtidPosition position("1-1-17,2-3-4");
  EXPECT_TRUE(position.Has({1, 1, 17}));
  EXPECT_TRUE(position.Has({1, 9, 16}));
  EXPECT_FALSE(position.Has({1, 1, 18}));
  EXPECT_FALSE(position.Has({3, 1, 1}));
  EXPECT_EQ(position.LastOf(2), 4u);
  EXPECT_EQ(position.LastOf(3), 0u);
  position.Add({1, 2, 18});
  position.Add({3, 5, 1});
  EXPECT_EQ(position.ToString(), "1-2-18,2-3-4,3-5-1");
}

TEST(GtidPosition, IsWrittenInOneForm) {
  EXPECT_EQ(GtidPosition("2-3-4,1-1-17").ToString(), "1-1-17,2-3-4");
  EXPECT_EQ(GtidPosition("").ToString(), "");
  EXPECT_EQ(GtidPosition().ToString(), "");
}

}  // namespace
}  // namespace kvstore::shardops
