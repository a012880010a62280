#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

using Result = LineReader::Result;

/// Returns the lines that a reader reads from `input`, written to a pipe in pieces of `piece` bytes. A line
/// that is too long is "(too long)".
std::vector<std::string> Lines(const std::string& input, size_t limit, size_t piece,
                               size_t* consumed = nullptr) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::thread writer([&] {
    for (size_t at = 0; at < input.size(); at += piece) {
      const size_t size = std::min(piece, input.size() - at);
      EXPECT_EQ(::write(ends[1], input.data() + at, size), static_cast<ssize_t>(size));
    }
    ::close(ends[1]);
  });
  std::vector<std::string> lines;
  LineReader reader(ends[0], limit, [] { return absl::OkStatus(); });
  std::string line;
  while (true) {
    const auto result = reader.Next(line);
    if (!result.ok() || *result == Result::kEnd) break;
    lines.push_back(*result == Result::kTooLong ? "(too long)" : line);
  }
  writer.join();
  ::close(ends[0]);
  if (consumed != nullptr) *consumed = reader.consumed();
  return lines;
}

TEST(LineReader, ReadsLinesAlsoTheLastWithoutItsEnd) {
  for (const size_t piece : {1, 2, 100}) {
    EXPECT_EQ(Lines("", 10, piece), (std::vector<std::string>{}));
    EXPECT_EQ(Lines("a\n\nb", 10, piece), (std::vector<std::string>{"a", "", "b"}));
    EXPECT_EQ(Lines("\n", 10, piece), (std::vector<std::string>{""}));
    EXPECT_EQ(Lines(std::string("a\0b\n", 4), 10, piece), (std::vector<std::string>{std::string("a\0b", 3)}));
  }
}

TEST(LineReader, PassesOverLinesBeyondTheLimit) {
  for (const size_t piece : {1, 7, 100'000}) {
    EXPECT_EQ(Lines("12345\n123456\nab\n1234567890", 5, piece),
              (std::vector<std::string>{"12345", "(too long)", "ab", "(too long)"}));
  }
  EXPECT_EQ(Lines(std::string(3'000'000, 'x') + "\nok\n", 1000, 65536),
            (std::vector<std::string>{"(too long)", "ok"}));
}

TEST(LineReader, CountsWhatItConsumed) {
  testing::Random random(testing::Seed("line_reader"));
  for (int round = 0; round < 200; ++round) {
    std::string input;
    for (size_t i = random.Below(30); i > 0; --i) input += std::string(random.Below(12), 'x') + "\n";
    if (random.OneIn(2)) input += "tail";
    size_t consumed = 0;
    Lines(input, 8, 1 + random.Below(20), &consumed);
    ASSERT_EQ(consumed, input.size());
  }
}

TEST(LineReader, SaysWhenItIsAboutToWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  int waits = 0;
  LineReader reader(ends[0], 10, [&] {
    // There is nothing to read, so a program that answers lines must send its answers now. Then more input
    // comes.
    ++waits;
    EXPECT_EQ(::write(ends[1], "b\n", 2), 2);
    return absl::OkStatus();
  });
  ASSERT_EQ(::write(ends[1], "a\n", 2), 2);
  std::string line;
  ASSERT_OK(reader.Next(line));
  EXPECT_EQ(line, "a");
  EXPECT_EQ(waits, 0);
  ASSERT_OK(reader.Next(line));
  EXPECT_EQ(line, "b");
  EXPECT_EQ(waits, 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(LineReader, DoesNotWaitIfItIsToldNotTo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  LineReader reader(ends[0], 10, [] { return absl::CancelledError("enough"); });
  std::string line;
  EXPECT_THAT(reader.Next(line), testing::FailsWith(absl::StatusCode::kCancelled, "enough"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(LineReader, ReportsInputThatCannotBeRead) {
  LineReader reader(-1, 10, [] { return absl::OkStatus(); });
  std::string line;
  EXPECT_THAT(reader.Next(line), testing::FailsWith(absl::StatusCode::kUnavailable, "cannot read the input"));
}

}  // namespace
}  // namespace kvstore::cli
