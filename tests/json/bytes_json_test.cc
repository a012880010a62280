#include "json/bytes_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

TEST(BytesJson, WritesTextAsItIsAndOtherBytesInBase64) {
  EXPECT_EQ(BytesToJson("h\xC3\xA9llo"), Json("h\xC3\xA9llo"));
  EXPECT_EQ(BytesToJson(""), Json(""));
  EXPECT_EQ(BytesToJson(std::string_view("\0", 1)), Json(std::string(1, '\0')));
  EXPECT_EQ(BytesToJson("\xFF\xFE"), (Json{{"b64", "//4="}}));
}

TEST(BytesJson, ReadsEitherForm) {
  EXPECT_EQ(*BytesFromJson(Json{{"b64", "//4="}}), "\xFF\xFE");
  EXPECT_EQ(*BytesFromJson(Json{{"b64", ""}}), "");
  EXPECT_EQ(*BytesFromJson(Json("a")), "a");
}

TEST(BytesJson, RefusesEverythingElse) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const char* text :
       {"1", "null", "[]", "{}", R"({"b64": 1})", R"({"b64": "//4=", "x": 1})", R"({"B64": "//4="})",
        R"({"b64": "//4"})", R"({"b64": "__4="})", R"({"b64": "/ /4="})", R"({"b64": "//5="})",
        R"({"b64": "====" })", R"({"b64": "//4=\n"})"}) {
    EXPECT_THAT(BytesFromJson(Json::parse(text)), FailsWith(kInvalid, "")) << text;
  }
}

TEST(BytesJson, KnowsUtf8) {
  for (const char* good : {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  // Overlong forms, surrogates, above U+10FFFF, truncated, a stray continuation byte.
  for (const char* bad :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC2", "\xE1\x80", "\xF1\x80\x80", "\x80", "a\xFF"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

RC_GTEST_PROP(BytesJsonProperty, AnyBytesComeBackThroughJsonText, (const std::string& bytes)) {
  const std::string text = BytesToJson(bytes).dump();
  RC_ASSERT(*BytesFromJson(Json::parse(text)) == bytes);
}

}  // namespace
}  // namespace kvstore
