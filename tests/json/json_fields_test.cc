#include "json/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(JsonFields, ReadsFieldsOfEachType) {
  const Json json =
      Json::parse(R"({"s": "text", "b": {"b64": "/w=="}, "n": 7, "text_n": "18446744073709551615",
                                   "t": true, "list": ["a", "b"], "raw": null, "array": [1, 2]})");
  JsonFields fields(json, "");
  EXPECT_EQ(fields.String("s"), "text");
  EXPECT_EQ(fields.Bytes("b"), "\xFF");
  EXPECT_EQ(fields.Uint("n", 1, 7), 7u);
  EXPECT_EQ(fields.Uint("text_n", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(fields.OptionalBool("t"), true);
  EXPECT_EQ(fields.OptionalBytesList("list"), (std::vector<std::string>{"a", "b"}));
  ASSERT_NE(fields.Find("raw"), nullptr);
  EXPECT_TRUE(fields.Find("raw")->is_null());
  EXPECT_EQ(fields.Array("array").size(), 2u);
  EXPECT_EQ(fields.OptionalUint("absent", 0, 1), std::nullopt);
  EXPECT_OK(fields.Finish());
}

/// Returns the status of Finish after `read` has read an object.
template <typename Read>
absl::Status Mistake(const std::string& text, Read read) {
  const Json json = Json::parse(text);
  JsonFields fields(json, "items[3].");
  read(fields);
  return fields.Finish();
}

TEST(JsonFields, NamesTheFieldAndTheProblem) {
  const auto number = [](JsonFields& fields) { fields.Uint("n", 1, 10); };
  EXPECT_THAT(Mistake("{}", number), FailsWith(kInvalid, "items[3].n: "));
  EXPECT_THAT(Mistake(R"({"n": 0})", number),
              FailsWith(kInvalid, "items[3].n: must be a whole number from 1 to 10"));
  EXPECT_THAT(Mistake(R"({"n": 11})", number),
              FailsWith(kInvalid, "items[3].n: must be a whole number from 1 to 10"));
  for (const char* text :
       {R"({"n": -1})", R"({"n": 1.5})", R"({"n": "x"})", R"({"n": ""})", R"({"n": null})", R"({"n": "1 "})",
        R"({"n": 1e30})", R"({"n": "-1"})", R"({"n": "18446744073709551616"})"}) {
    EXPECT_THAT(Mistake(text, number), FailsWith(kInvalid, "items[3].n: ")) << text;
  }
  EXPECT_THAT(Mistake(R"({"s": 1})", [](JsonFields& fields) { fields.String("s"); }),
              FailsWith(kInvalid, "items[3].s: "));
  EXPECT_THAT(Mistake(R"({"b": "yes"})", [](JsonFields& fields) { fields.OptionalBool("b"); }),
              FailsWith(kInvalid, "items[3].b: "));
  EXPECT_THAT(Mistake(R"({"l": "a"})", [](JsonFields& fields) { fields.OptionalBytesList("l"); }),
              FailsWith(kInvalid, "items[3].l: "));
  EXPECT_THAT(Mistake(R"({"l": ["a", 1]})", [](JsonFields& fields) { fields.OptionalBytesList("l"); }),
              FailsWith(kInvalid, "items[3].l"));
  EXPECT_THAT(Mistake(R"({"a": {}})", [](JsonFields& fields) { fields.Array("a"); }),
              FailsWith(kInvalid, "items[3].a: "));
}

TEST(JsonFields, RefusesUnknownFieldsAndOtherThanObjects) {
  EXPECT_THAT(Mistake(R"({"n": 1, "m": 2})", [](JsonFields& fields) { fields.Uint("n", 1, 10); }),
              FailsWith(kInvalid, "items[3].m: "));
  EXPECT_THAT(Mistake("[]", [](JsonFields& fields) { fields.Uint("n", 1, 10); }),
              FailsWith(kInvalid, "object"));
}

TEST(JsonFields, AMistypedFieldIsNamedWithTheOneThatIsMissing) {
  const auto row = [](JsonFields& fields) {
    fields.String("row");
    fields.OptionalUint("limit", 1, 10);
  };
  EXPECT_EQ(Mistake(R"({"rwo": "r", "a": 1})", row).message(),
            "items[3].row: missing; items[3].rwo: unknown field; did you mean row?");
  EXPECT_EQ(Mistake(R"({"colour": "red"})", row).message(),
            "items[3].row: missing; items[3].colour: unknown field");
  EXPECT_EQ(Mistake(R"({"row": "r", "limits": 1})", row).message(),
            "items[3].limits: unknown field; did you mean limit?");
  EXPECT_EQ(Mistake(R"({"row": "r", "limit": 1, "limits": 1})", row).message(),
            "items[3].limits: unknown field")
      << "a field that is there was not meant";
  EXPECT_EQ(Mistake("{}", row).message(), "items[3].row: missing");
  EXPECT_EQ(Mistake(R"({"row": 1, "rwo": 1})", row).message(), "items[3].row: must be a string, not number");
  EXPECT_EQ(Mistake("{\"" + std::string(1'000'000, 'r') + "\": 1, \"row\": \"r\"}", row).message().size(),
            1'000'000 + std::string("items[3].: unknown field").size());
}

TEST(JsonFields, ReportsTheFirstMistakeOrAll) {
  const Json json = {{"a", 1}, {"b", "x"}};
  JsonFields fields(json, "");
  fields.String("a");
  EXPECT_EQ(fields.String("b"), "x");
  fields.Fail("c", "later");
  EXPECT_THAT(fields.Finish(), FailsWith(kInvalid, "a: "));
}

}  // namespace
}  // namespace kvstore
