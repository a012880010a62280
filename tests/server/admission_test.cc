#include "server/call/admission.h"

#include <gtest/gtest.h>

namespace kvstore::server {
namespace {

ServerLimits Limits(size_t calls, size_t bytes) {
  ServerLimits limits;
  limits.max_calls = calls;
  limits.max_bytes = bytes;
  return limits;
}

TEST(Admission, ACallerTakesHalf) {
  Admission admission(Limits(5, 100), /*shares=*/true);
  CallerShare one("one");
  CallerShare two("two");
  CallerShare three("three");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission.Admit(one, 1));
  EXPECT_FALSE(admission.Admit(one, 1));
  EXPECT_TRUE(admission.Admit(two, 50));
  EXPECT_FALSE(admission.Admit(two, 1)) << "its bytes are half";
  EXPECT_TRUE(admission.Admit(three, 40));
  EXPECT_FALSE(admission.Admit(three, 1)) << "all calls are taken";
  EXPECT_EQ(admission.calls(), 5u);
  EXPECT_EQ(admission.refused(), 3u);
  admission.Release(one, 1);
  EXPECT_FALSE(admission.Admit(three, 20)) << "all bytes are taken";
  EXPECT_TRUE(admission.Admit(three, 5));
}

TEST(Admission, OneWhoIsAloneTakesAll) {
  Admission admission(Limits(4, 100), /*shares=*/false);
  CallerShare all("");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(admission.Admit(all, 25));
  EXPECT_FALSE(admission.Admit(all, 0));
  admission.Release(all, 25);
  EXPECT_FALSE(admission.Admit(all, 26));
}

TEST(Admission, WhatIsBeyondAShareIsNotChargedToOthers) {
  Admission admission(Limits(100, 100), /*shares=*/true);
  CallerShare one("one");
  CallerShare two("two");
  ASSERT_TRUE(admission.Admit(one, 1));
  EXPECT_TRUE(admission.HasRoom(one, 0));
  admission.Add(one, 500);
  EXPECT_FALSE(admission.HasRoom(one, 0));
  EXPECT_TRUE(admission.HasRoom(one, 451)) << "what it has itself";
  EXPECT_TRUE(admission.Admit(two, 49));
  admission.Release(two, 49);
  admission.Remove(one, 460);
  EXPECT_TRUE(admission.HasRoom(one, 0));
  admission.Release(one, 41);
  EXPECT_EQ(one.bytes, 0u);
  // All of the excess is given back: both callers have their whole shares again.
  EXPECT_TRUE(admission.Admit(one, 50));
  EXPECT_TRUE(admission.Admit(two, 50));
}

TEST(Admission, ALargeRequestIsLetInAlone) {
  Admission admission(Limits(100, 100), /*shares=*/true);
  CallerShare one("one");
  ASSERT_TRUE(admission.Admit(one, 80));
  EXPECT_FALSE(admission.Admit(one, 1));
  admission.Release(one, 80);
  EXPECT_TRUE(admission.Admit(one, 1));
  EXPECT_FALSE(admission.Admit(one, 80));
}

TEST(Admission, AnotherRequestOfACallTakesThePlaceOfTheOneBefore) {
  Admission admission(Limits(100, 100), /*shares=*/true);
  CallerShare one("one");
  ASSERT_TRUE(admission.Admit(one, 30));
  ASSERT_TRUE(admission.Admit(one, 10));
  EXPECT_TRUE(admission.Replace(one, 30, 40));
  EXPECT_FALSE(admission.Replace(one, 40, 41));
  EXPECT_EQ(one.bytes, 50u) << "the one before is counted still";
  EXPECT_TRUE(admission.Replace(one, 40, 0));
  EXPECT_TRUE(admission.Admit(one, 40));
}

}  // namespace
}  // namespace kvstore::server
