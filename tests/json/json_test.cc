#include "json/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/json_text.h"
#include "kvstore_api/limits.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Json, ParsesText) {
  EXPECT_EQ(*ParseJson(R"({"a": [1, "x"]})"), (Json{{"a", {1, "x"}}}));
  EXPECT_EQ(*ParseJson("18446744073709551615"), Json(UINT64_MAX));
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", " ", "{", "{'a': 1}", "nul", "1 2", "\"\xFF\"", "\"\xED\xA0\x80\"",
                           "{\"a\":1,}", "// x\n1", "\"\\ud800\"", "NaN", "\"a\nb\""}) {
    EXPECT_THAT(ParseJson(text), FailsWith(kInvalid, "")) << text;
  }
}

TEST(Json, SaysWhereAMistakeIsAndNotWhatIsThere) {
  const std::string secret = "hunter2";
  EXPECT_THAT(ParseJson("{\"a\": 1,\n \"b\": x" + secret + "}"), FailsWith(kInvalid, "line 2, column 7"));
  EXPECT_THAT(ParseJson("x"), FailsWith(kInvalid, "line 1, column 1"));
  EXPECT_THAT(ParseJson("[\"" + secret), FailsWith(kInvalid, "ends too early"));
  EXPECT_THAT(ParseJson("[1e999]"), FailsWith(kInvalid, "out of range"));
  for (const std::string& text : {"\"" + secret + "\xff\"", secret, "\"" + secret + "\n\"", "12" + secret,
                                  "{\"" + secret + "\"}", "[\"" + secret, "[1e999, \"" + secret + "\"]"}) {
    const absl::Status status = ParseJson(text).status();
    EXPECT_THAT(status, FailsWith(kInvalid, "not JSON: "));
    EXPECT_EQ(std::string(status.message()).find("hunter"), std::string::npos) << status;
  }
}

TEST(Json, TextOfWhatIsNotUtf8DoesNotThrow) {
  EXPECT_EQ(TextOf(Json{{"a", "x\xffy"}}), "{\"a\":\"x\xEF\xBF\xBDy\"}");
  EXPECT_EQ(TextOf(Json{{"a", 1}}, 1), "{\n \"a\": 1\n}");
}

TEST(Json, RefusesDeepNestingWithoutRecursion) {
  const std::string deep(100, '[');
  EXPECT_OK(ParseJson(deep + std::string(100, ']')));
  EXPECT_THAT(ParseJson(deep + "[" + std::string(101, ']')), FailsWith(kInvalid, "100"));
  EXPECT_THAT(ParseJson(std::string(1'000'000, '[')), FailsWith(kInvalid, "100"));
  // Brackets inside strings do not nest.
  EXPECT_OK(ParseJson("\"" + std::string(1000, '[') + "\""));
}

TEST(Json, ADocumentIsAnObjectWithinTheLimit) {
  EXPECT_OK(ParseDocument("{}"));
  EXPECT_THAT(ParseDocument("[]"), FailsWith(kInvalid, "object"));
  EXPECT_THAT(ParseDocument("null"), FailsWith(kInvalid, "object"));
  const std::string full = R"({"a":")" + std::string(kMaxValueBytes - 8, 'x') + R"("})";
  ASSERT_EQ(full.size(), kMaxValueBytes);
  EXPECT_OK(ParseDocument(full));
  EXPECT_THAT(ParseDocument(full + " "), FailsWith(kInvalid, "4194304"));
}

TEST(Json, ADocumentIsInactiveIfItSaysSoItself) {
  for (const char* text : {R"({"active":false})", R"({"a": true, "active" : false})",
                           R"({"\u0061ctive": false})", R"({"active": true, "active": false})"}) {
    EXPECT_TRUE(IsInactive(text)) << text;
  }
  for (const char* text :
       {"{}", R"({"active": true})", R"({"active": 0})", R"({"active": null})", R"({"active": "false"})",
        R"({"a": {"active": false}})", R"({"a": false})", R"({"\u0061ctive": true, "b": false})",
        R"({"text": "\"active\": false"})", R"({"active": false, "active": true})", R"([{"active": false}])",
        R"({"active": false)", "false", ""}) {
    EXPECT_FALSE(IsInactive(text)) << text;
  }
}

}  // namespace
}  // namespace kvstore
