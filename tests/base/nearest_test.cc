#include "base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvstore {
namespace {

using Words = std::vector<std::string>;

TEST(Nearest, DistancesCountSingleMistakes) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("scan", "scan"), 0u);
  EXPECT_EQ(EditDistance("scna", "scan"), 1u) << "two letters changed places";
  EXPECT_EQ(EditDistance("sca", "scan"), 1u);
  EXPECT_EQ(EditDistance("sscan", "scan"), 1u);
  EXPECT_EQ(EditDistance("skan", "scan"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(Nearest, BeginningsPartsAndMistypedWordsAreFound) {
  const Words options = {"ttl-ms", "max-versions", "durability", "type", "json"};
  EXPECT_EQ(Nearest("ttl", options), Words({"ttl-ms"}));
  EXPECT_EQ(Nearest("versions", options), Words({"max-versions"}));
  EXPECT_EQ(Nearest("durabillity", options), Words({"durability"}));
  EXPECT_EQ(Nearest("jsno", options), Words({"json"}));
  EXPECT_EQ(Nearest("rejects", Words({"reject-file", "restart"})), Words({"reject-file"}));
  EXPECT_EQ(Nearest("timestmp", Words({"start_timestamp", "limit"})), Words({"start_timestamp"}));
  EXPECT_EQ(Nearest("color", options), Words());
  EXPECT_EQ(Nearest("", options), Words());
  EXPECT_EQ(Nearest("x", Words({"a", "b"})), Words()) << "all words of one letter are near each other";
}

TEST(Nearest, TheLikeliestComesFirstAndThreeAreEnough) {
  EXPECT_EQ(Nearest("stat", Words({"start", "state", "stats"})), Words({"state", "stats", "start"}));
  EXPECT_EQ(Nearest("a", Words({"ab", "ac", "ad", "ae"})), Words({"ab", "ac", "ad"}));
}

TEST(Nearest, ALongWordIsComparedWithNothing) {
  const std::string name(64, 'a');
  EXPECT_EQ(Nearest(name, Words({name})), Words({name}));
  EXPECT_EQ(Nearest(name + "a", Words({name + "a"})), Words());
}

TEST(Nearest, WhatMayBeMeantIsAsked) {
  EXPECT_EQ(DidYouMean({}), "");
  EXPECT_EQ(DidYouMean({"row"}), "; did you mean row?");
  EXPECT_EQ(DidYouMean({"row", "rows"}), "; did you mean row, or rows?");
}

}  // namespace
}  // namespace kvstore
