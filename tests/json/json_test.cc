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
  for (const std::string_view text :
       {std::string_view("{\"a\":1}\0", 8), std::string_view("{\"a\":1}\0\xff\xfe", 10),
        std::string_view("\0{}", 3), std::string_view("\"a\0b\"", 5)}) {
    EXPECT_THAT(ParseJson(text), FailsWith(kInvalid, "not JSON")) << text;
    EXPECT_THAT(CheckDocument(text), FailsWith(kInvalid, "not JSON")) << text;
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

TEST(Json, RefusesIntegersThatWouldLoseDigits) {
  EXPECT_EQ(*ParseJson("-9223372036854775808"), Json(INT64_MIN));
  for (const char* text : {"18446744073709551616", "-9223372036854775809", "100000000000000000000000"}) {
    EXPECT_THAT(ParseJson(text), FailsWith(kInvalid, "it: an integer beyond 64 bits")) << text;
    const std::string inside = std::string(R"({"n":[1,{"a":0,"b":)") + text + R"(}],"m":"x"})";
    EXPECT_THAT(ParseJson(inside), FailsWith(kInvalid, "n[1].b: an integer beyond 64 bits")) << inside;
    const std::string behind = std::string(R"([[],{},[[2],null,true,-3,1.5,"s",)") + text + "]]";
    EXPECT_THAT(ParseJson(behind), FailsWith(kInvalid, "[2][6]: an integer")) << behind;
  }
  EXPECT_THAT(ParseJson("18446744073709551616"),
              FailsWith(kInvalid, "from -9223372036854775808 to 18446744073709551615"));
}

TEST(Json, RealNumbersAndStringsMayHaveManyDigits) {
  for (const char* text :
       {"18446744073709551616.0", "18446744073709551616e1", "0.12345678901234567890123",
        "-1234567890.12345678901234567890", "1e20", R"("18446744073709551616")",
        R"({"18446744073709551616":1})", R"(["\",18446744073709551616"])", "[1234567890,-1234567890]"}) {
    EXPECT_OK(ParseJson(text)) << text;
  }
}

TEST(Json, APathThatIsLongIsNotQuoted) {
  const absl::Status status =
      ParseJson("{\"" + std::string(1'000'000, 'k') + "\":18446744073709551616}").status();
  EXPECT_THAT(status, FailsWith(kInvalid, "a field whose path has 1000000 bytes: an integer beyond 64 bits"));
}

TEST(Json, ADocumentIsStoredWithIntegersOfAnySize) {
  const std::string document = R"({"n":18446744073709551616})";
  EXPECT_OK(CheckDocument(document));
  EXPECT_EQ((*ParseStoredJson(document))["n"], 18446744073709551616.0);
  EXPECT_THAT(ParseDocument(document), FailsWith(kInvalid, "data: n: an integer beyond 64 bits"));
  EXPECT_TRUE(IsInactive(R"({"active":false,"n":18446744073709551616})"));
  EXPECT_THAT(CheckDocument("[]"), FailsWith(kInvalid, "object"));
  EXPECT_THAT(ParseStoredJson(std::string(101, '[')), FailsWith(kInvalid, "100"));
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
  EXPECT_OK(ParseJson(deep + "[" + std::string(101, ']'), 101));
  EXPECT_OK(ParseStoredJson(deep + "[" + std::string(101, ']'), 101));
  EXPECT_THAT(ParseJson(deep + "[[" + std::string(102, ']'), 101), FailsWith(kInvalid, "the limit is 101"));
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
