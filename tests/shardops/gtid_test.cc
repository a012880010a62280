#include "shardops/gtid.h"

#include <gtest/gtest.h>

/// Positions that are compared, and to which transactions are added.
namespace kvstore::shardops {
namespace {

TEST(Gtid, WhatIsMissingIsCountedByDomain) {
  EXPECT_EQ(CountMissing("0-1-17", "0-1-17"), 0u);
  EXPECT_EQ(CountMissing("0-2-20", "0-1-17"), 3u);
  EXPECT_EQ(CountMissing("0-1-17", "0-2-20"), 0u);
  EXPECT_EQ(CountMissing("0-1-5,1-4-3", "0-1-5"), 3u);
  EXPECT_EQ(CountMissing("0-1-5", ""), 5u);
  EXPECT_EQ(CountMissing("", "0-1-5"), 0u);
  EXPECT_EQ(CountMissingOfDomain("0-1-20,1-4-3", "0-2-17", 0), 3u);
  EXPECT_EQ(CountMissingOfDomain("0-1-20,1-4-3", "0-2-17", 1), 3u);
  EXPECT_EQ(CountMissingOfDomain("0-1-16,1-4-3", "0-2-17", 0), 0u);
  EXPECT_EQ(CountBeyond("0-1-12660", "0-1-12659,0-2-13335", false), 1u);
  EXPECT_EQ(CountBeyond("0-2-13000", "0-1-12659,0-2-13335", false), 0u);
  EXPECT_EQ(CountBeyond("0-3-5", "0-1-12659", false), 0u);
  EXPECT_EQ(CountBeyond("0-3-5", "0-1-12659", true), 1u);
  EXPECT_EQ(PositionOfOtherDomains("1-1-50,2-3-8,4-7-1", "2-3-9", 7), "1-1-50");
  EXPECT_EQ(LatestOfEachDomain("0-1-5,1-4-3", "0-2-7,2-1-1"), "0-2-7,1-4-3,2-1-1");
}

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
