#include "server/http/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/random.h"

namespace kvstore::server {
namespace {

std::vector<std::string> Take(LineSplitter& splitter) {
  std::vector<std::string> lines;
  while (auto line = splitter.Next()) lines.push_back(*std::move(line));
  return lines;
}

TEST(LineSplitter, CutsWhatComesInPieces) {
  testing::Random random(testing::Seed("lines"));
  const std::string text = "a\nbc\r\n\n \t\r\nd\r\n\r\nlast";
  for (int round = 0; round < 1'000; ++round) {
    LineSplitter splitter(5);
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random.Below(4);
      splitter.Append(std::string_view(text).substr(at, size));
      for (std::string& line : Take(splitter)) lines.push_back(std::move(line));
      at += size;
    }
    splitter.End();
    for (std::string& line : Take(splitter)) lines.push_back(std::move(line));
    ASSERT_EQ(lines, (std::vector<std::string>{"a", "bc", "d", "last"}));
    ASSERT_EQ(splitter.partial_bytes(), 0u);
    ASSERT_FALSE(splitter.is_too_long());
  }
}

TEST(LineSplitter, TakesNoLongerLine) {
  LineSplitter splitter(5);
  splitter.Append("12345\n123456");
  EXPECT_EQ(Take(splitter), (std::vector<std::string>{"12345"}));
  EXPECT_TRUE(splitter.is_too_long());
  splitter.Append("\nx\n");
  EXPECT_TRUE(Take(splitter).empty());
}

TEST(LineSplitter, ALineThatWasTakenKeepsNothing) {
  for (const char* const behind : {"", "{", "{}\n{"}) {
    LineSplitter splitter(1 << 24);
    splitter.Append(std::string(1 << 23, 'x') + "\n" + behind);
    EXPECT_GE(Take(splitter).size(), 1u);
    EXPECT_LT(splitter.held_bytes(), 1'000u) << behind;
  }
}

TEST(LineSplitter, ManyLinesTakeTheMemoryOfFew) {
  LineSplitter splitter(1 << 20);
  const std::string piece(1'000, 'x');
  for (int i = 0; i < 10'000; ++i) {
    splitter.Append(piece + "\n" + piece.substr(0, 10));
    ASSERT_EQ(Take(splitter).size(), 1u);
    ASSERT_LT(splitter.partial_bytes(), 2'000u);
  }
}

}  // namespace
}  // namespace kvstore::server
