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

TEST(GtidSet, WhatIsRemovedIsCutOutOfIntervals) {
  const auto without = [](const std::string& one, const std::string& other) {
    GtidSet set(one);
    set.Remove(GtidSet(other));
    return set.ToString();
  };
  EXPECT_EQ(without(Of(kA, "1-10"), Of(kA, "4-6")), Of(kA, "1-3:7-10"));
  EXPECT_EQ(without(Of(kA, "1-10:20"), Of(kA, "8-20")), Of(kA, "1-7"));
  EXPECT_EQ(without(Of(kA, "5-10"), Of(kA, "1-5:7:9-30")), Of(kA, "6:8"));
  EXPECT_EQ(without(Of(kA, "1-3"), Of(kA, "1-3")), "");
  EXPECT_EQ(without(Of(kA, "1-3"), Of(kB, "1-3")), Of(kA, "1-3"));
  EXPECT_EQ(without(Of(kA, "1-3:tag:1-2"), Of(kA, "1-3")), Of(kA, "tag:1-2"));
}

TEST(GtidSet, TheLowestMissingNumberOfAServerIsFound) {
  const GtidSet set(Of(kA, "1-3:5:9-10:tag:2"));
  const auto lowest = [&](uint64_t from) { return set.LowestMissing(kA, from); };
  EXPECT_EQ(lowest(1), 4u);
  EXPECT_EQ(lowest(4), 4u);
  EXPECT_EQ(lowest(5), 6u);
  EXPECT_EQ(lowest(9), 11u);
  EXPECT_EQ(lowest(40), 40u);
  EXPECT_EQ(set.LowestMissing(std::string(kA) + ":tag"), 1u);
  EXPECT_EQ(set.LowestMissing(std::string(kA) + ":tag", 2), 3u);
  EXPECT_EQ(set.LowestMissing(kB), 1u);
}

TEST(GtidSet, OfOneServerAreItsNumbersOfAllTagsButOne) {
  const GtidSet set(Of(kA, "1-3:other:1:tag:2") + "," + Of(kB, "1"));
  EXPECT_EQ(set.OfServer(kA, "tag").ToString(), Of(kA, "1-3") + "," + Of(kA, "other:1"));
}

TEST(Gtid, PositionsOfMariaDbAreCountedByTheirSequences) {
  EXPECT_EQ(CountMissing("0-1-17,1-4-3", "0-2-15"), 5u);
  EXPECT_EQ(CountMissing("0-1-17", "0-9-17"), 0u);
  EXPECT_EQ(CountBeyond("0-1-17,0-2-5", "0-1-16", /*unknown=*/true), 2u);
  EXPECT_EQ(CountBeyond("0-1-17,0-2-5", "0-1-16", /*unknown=*/false), 1u);
}

}  // namespace
}  // namespace kvstore::shardops
