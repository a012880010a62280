#include "cli/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

TEST(Escape, LeavesTextAndMarksTheRest) {
  EXPECT_EQ(Escape("h\xC3\xA9llo"), "h\xC3\xA9llo");
  EXPECT_EQ(Escape(std::string_view("a\0\n\x7F", 4)), "a\\x00\\x0A\\x7F");
  EXPECT_EQ(Escape("\xFF\xC3\xA9"), "\\xFF\\xC3\\xA9");
  EXPECT_EQ(Escape("a\\b"), "a\\\\b");
}

TEST(Escape, RefusesWhatItNeverWrites) {
  for (const char* text : {"\\", "a\\", "\\x", "\\x1", "\\xGG", "\\n", "\\x+1"}) {
    EXPECT_THAT(Unescape(text), testing::FailsWith(absl::StatusCode::kInvalidArgument, "\\")) << text;
  }
}

RC_GTEST_PROP(EscapeProperty, AnyBytesComeBack, (const std::string& bytes)) {
  const std::string text = Escape(bytes);
  RC_ASSERT(text.find('\n') == std::string::npos);
  RC_ASSERT(*Unescape(text) == bytes);
}

}  // namespace
}  // namespace kvstore::cli
