#include "cli/reports/json_blocks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string_view>

#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

/// A pipe whose writer is slow.
class JsonBlocks : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_.data()), 0); }
  ~JsonBlocks() override {
    ::close(ends_[0]);
    CloseWriter();
  }
  void Write(std::string_view text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

  std::array<int, 2> ends_{};
};

TEST_F(JsonBlocks, WaitsForTheWriter) {
  JsonBlockReader reader(ends_[0]);
  Write("{\"a\":1}\n\n");
  Write("oops");
  CloseWriter();
  ASSERT_OK_AND_ASSIGN(const JsonBlock block, reader.Next());
  ASSERT_EQ(block.lines.size(), 2u);
  EXPECT_OK(block.lines[0].json);
  EXPECT_FALSE(block.lines[1].json.ok());
  EXPECT_EQ(block.lines[1].number, 3u);
  EXPECT_EQ(block.blank, 1u);
  EXPECT_TRUE(block.is_last);
}

TEST_F(JsonBlocks, AReaderThatIsGivenUpDoesNotWaitForTheWriter) {
  Write("{}\n{");
  auto ended = std::async(std::launch::async, [this] { const JsonBlockReader reader(ends_[0]); });
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  CloseWriter();
}

}  // namespace
}  // namespace kvstore::cli
