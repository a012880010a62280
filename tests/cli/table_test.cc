#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/standard_output.h"

namespace kvstore::cli {
namespace {

/// Catches all that is written to standard output while this exists.
class Captured {
 public:
  Captured() { ::testing::internal::CaptureStdout(); }
  std::string Text() const {
    FlushOut();
    return ::testing::internal::GetCapturedStdout();
  }
};

TEST(Table, AlignsColumns) {
  const Captured captured;
  Table table({"NAME", "N"});
  table.Add({"long name", "1"});
  table.Add({"\xC3\xA4", "22"});
  table.Print();
  EXPECT_EQ(captured.Text(), "NAME       N\nlong name  1\n\xC3\xA4          22\n");
}

TEST(Table, WithoutRowsSaysSo) {
  const Captured captured;
  Table({"NAME"}).Print();
  EXPECT_EQ(captured.Text(), "(none)\n");
}

TEST(Table, ALongOneIsWrittenWhileRowsAreAdded) {
  constexpr int kRows = 3'000;
  Table table({"NAME", "N"});
  std::string before;
  {
    const Captured captured;
    for (int i = 0; i < kRows; ++i) table.Add({i == kRows - 1 ? "a wide name" : "n", std::to_string(i)});
    before = captured.Text();
  }
  EXPECT_GT(before.size(), 2'000U);
  std::string rest;
  {
    const Captured captured;
    table.Print();
    rest = captured.Text();
  }
  std::istringstream lines(before + rest);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "NAME  N");
  for (int i = 0; i < kRows - 1; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with("n ")) << line;
    EXPECT_TRUE(line.ends_with(" " + std::to_string(i))) << line;
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "a wide name  2999");
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(Table, ManyBytesAreWrittenEarly) {
  const Captured captured;
  Table table({"VALUE"});
  for (int i = 0; i < 3; ++i) table.Add({std::string(size_t{1} << 20, 'v')});
  EXPECT_GT(captured.Text().size(), size_t{2} << 20);
}

}  // namespace
}  // namespace kvstore::cli
