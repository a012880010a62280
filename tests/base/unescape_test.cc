#include "base/unescape.h"

#include <gtest/gtest.h>

#include <string>

namespace kvstore {
namespace {

TEST(Unescape, RestoresBytesAndFindsTheFirstMistake) {
  std::string out = "before ";
  EXPECT_EQ(AppendUnescaped(R"(a\\b\x00\x3a\x3A\xff)", out), std::nullopt);
  EXPECT_EQ(out, std::string("before a\\b\0::\xff", 14));
  for (const auto& [text, place] : {std::pair(R"(ab\n)", 2u), std::pair(R"(\)", 0u), std::pair(R"(a\x3)", 1u),
                                    std::pair(R"(\\\xg1)", 2u), std::pair(R"(\X41)", 0u)}) {
    EXPECT_EQ(AppendUnescaped(text, out), place) << text;
  }
}

}  // namespace
}  // namespace kvstore
