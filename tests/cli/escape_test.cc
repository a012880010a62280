#include "cli/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json_api/answers.h"
#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

TEST(Escape, LeavesTextAndMarksTheRest) {
  EXPECT_EQ(Escape("h\xC3\xA9llo"), "h\xC3\xA9llo");
  EXPECT_EQ(Escape(std::string_view("a\0\n\x7F", 4)), "a\\x00\\x0A\\x7F");
  EXPECT_EQ(Escape("\xFF\xC3\xA9"), "\\xFF\\xC3\\xA9");
  EXPECT_EQ(Escape("a\\b"), "a\\\\b");
}

// Characters on which terminals act: C1 controls, and those that change the direction of text.
const std::string kObeyed[] = {"\u0080", "\u009b", "\u009f", "\u061c", "\u200e", "\u200f",
                               "\u2028", "\u202a", "\u202e", "\u2066", "\u2069"};
const std::string kHarmless[] = {"\u00a0", "\u00e9", "\u061b", "\u200d",    "\u2010",
                                 "\u2030", "\u2065", "\u20ac", "\U0001f600"};

TEST(Escape, MarksWhatTerminalsObey) {
  EXPECT_EQ(Escape("a\u009b31m"), "a\\xC2\\x9B31m");
  EXPECT_EQ(Escape("\u202e"), "\\xE2\\x80\\xAE");
  for (const std::string& text : kObeyed) {
    EXPECT_TRUE(Escape(text).starts_with("\\x")) << text;
    EXPECT_EQ(*Unescape(Escape(text)), text);
    EXPECT_TRUE(Printable(text, Lines::kMany).starts_with("\\x")) << text;
    EXPECT_TRUE(PrintableJson(text).starts_with("\\u")) << text;
  }
  for (const std::string& text : kHarmless) {
    EXPECT_EQ(Escape(text), text);
    EXPECT_EQ(Printable(text, Lines::kOne), text);
    EXPECT_EQ(PrintableJson(text), text);
  }
}

TEST(Escape, TextForPeopleKeepsItsLinesAndBackslashes) {
  EXPECT_EQ(Printable("a\\b\n\tc\x1b[31m", Lines::kMany), "a\\b\n\tc\\x1B[31m");
  EXPECT_EQ(Printable("a\\b\n\tc", Lines::kOne), "a\\b\\x0A\\x09c");
  EXPECT_EQ(Printable(Escape("\x1b\\"), Lines::kOne), Escape("\x1b\\")) << "what is marked stays as it is";
  EXPECT_EQ(Printable("\x9b", Lines::kMany), "\\x9B") << "no UTF-8";
}

TEST(Escape, JsonSaysTheSame) {
  const nlohmann::json json = {{"c\u009b", "\u202e\x7f\u00e9\\"}};
  EXPECT_EQ(ToLine(json), R"({"c\u009b":"\u202e\u007f)"
                          "\u00e9"
                          R"(\\"})");
  EXPECT_EQ(nlohmann::json::parse(ToLine(json)), json);
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
