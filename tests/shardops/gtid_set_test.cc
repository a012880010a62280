#include "shardops/gtid_set.h"

#include <gtest/gtest.h>

#include "shardops/gtid.h"

/// MySQL's sets of GTIDs, and what the arithmetic of both engines makes of them.
namespace kvstore::shardops {
namespace {

constexpr char kA[] = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
constexpr char kB[] = "71ad01b7-eab8-11f1-bfe3-02fc00000001";

std::string Of(const char* server, const std::string& numbers) { return std::string(server) + ":" + numbers; }

std::string Sum(const std::string& one, const std::string& other) {
  GtidSet sum(one);
  sum.Add(GtidSet(other));
  return sum.ToString();
}

TEST(GtidSet, IsWrittenInOneForm) {
  EXPECT_EQ(GtidSet("").ToString(), "");
  EXPECT_EQ(GtidSet(Of(kB, "7:1-3") + ",\n" + Of(kA, "5")).ToString(), Of(kA, "5") + "," + Of(kB, "1-3:7"));
  EXPECT_EQ(GtidSet(Of(kA, "1-3:4:6-9:5")).ToString(), Of(kA, "1-9")) << "intervals that touch are one";
  EXPECT_EQ(GtidSet(Of(kA, "1-2:backup:1:5-6")).ToString(), Of(kA, "1-2") + "," + Of(kA, "backup:1:5-6"));
}

TEST(GtidSet, OverlappingIntervalsAreCountedOnce) {
  EXPECT_EQ(Sum(Of(kA, "1-5:10-12"), Of(kA, "4-11")), Of(kA, "1-12"));
  EXPECT_EQ(Sum(Of(kA, "1-5"), Of(kA, "7")), Of(kA, "1-5:7"));
  EXPECT_EQ(Sum(Of(kA, "1-20"), Of(kA, "5-6")), Of(kA, "1-20"));
  EXPECT_EQ(Sum(Of(kA, "1"), Of(kB, "1")), Of(kA, "1") + "," + Of(kB, "1"));
}

TEST(GtidSet, WhatIsMissingIsCountedWithinGapsAndForUnknownServers) {
  EXPECT_EQ(CountMissing(Of(kA, "1-10"), Of(kA, "1-10")), 0u);
  EXPECT_EQ(CountMissing(Of(kA, "1-10"), Of(kA, "1-3:7-20")), 3u);
  EXPECT_EQ(CountMissing(Of(kA, "1-10"), ""), 10u);
  EXPECT_EQ(CountMissing("", Of(kA, "1-10")), 0u);
  EXPECT_EQ(CountMissing(Of(kA, "1-2") + "," + Of(kB, "5"), Of(kA, "2-3")), 2u);
  EXPECT_EQ(CountMissing(Of(kA, "tag:1-2"), Of(kA, "1-2")), 2u) << "a tag has a sequence of its own";
  for (const bool unknown : {true, false}) {
    EXPECT_EQ(CountBeyond(Of(kA, "1-2") + "," + Of(kB, "5"), Of(kA, "2-3"), unknown), 2u)
        << "a server that is not mentioned has written nothing that is there";
  }
}

TEST(Gtid, PositionsOfMariaDbAreCountedByTheirSequences) {
  EXPECT_EQ(CountMissing("0-1-17,1-4-3", "0-2-15"), 5u);
  EXPECT_EQ(CountMissing("0-1-17", "0-9-17"), 0u);
  EXPECT_EQ(CountBeyond("0-1-17,0-2-5", "0-1-16", /*unknown=*/true), 2u);
  EXPECT_EQ(CountBeyond("0-1-17,0-2-5", "0-1-16", /*unknown=*/false), 1u);
}

}  // namespace
}  // namespace kvstore::shardops
