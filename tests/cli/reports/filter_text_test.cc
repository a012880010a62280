#include "cli/reports/filter_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

using testing::FailsWith;

/// Values that match.
std::optional<std::vector<std::string>> Of(std::vector<std::string> values) { return values; }

Where Parsed(const std::string& text) {
  const auto where = ParseWhere(text);
  EXPECT_OK(where);
  return where.value_or(Where());
}

TEST(FilterText, HasValuesByKey) {
  EXPECT_EQ(Parsed("country=US"), (Where{{"country", Of({"US"})}}));
  EXPECT_EQ(Parsed("country=US,CA;gender=*"),
            (Where{{"country", Of({"US", "CA"})}, {"gender", std::nullopt}}));
  EXPECT_EQ(Parsed("country="), (Where{{"country", Of({""})}})) << "the empty value";
  EXPECT_EQ(Parsed("country=US,"), (Where{{"country", Of({"US", ""})}}));
  EXPECT_EQ(Parsed(""), Where());
  EXPECT_EQ(Parsed("app=a=b:c"), (Where{{"app", Of({"a=b:c"})}})) << "behind the first '=' others are text";
}

TEST(FilterText, ABackslashTakesAwayTheMeaning) {
  EXPECT_EQ(Parsed(R"(app=a\,b,c\;d)"), (Where{{"app", Of({"a,b", "c;d"})}}));
  EXPECT_EQ(Parsed(R"(a\=b=\*)"), (Where{{"a=b", Of({"*"})}}));
  EXPECT_EQ(Parsed(R"(app=a\\,b)"), (Where{{"app", Of({"a\\", "b"})}}));
  EXPECT_EQ(Parsed(R"(app=a\)"), (Where{{"app", Of({"a\\"})}})) << "a last one stands for itself";
}

TEST(FilterText, OtherTextIsRefusedWithTheReason) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseWhere("country"), FailsWith(kInvalid, "'country': a condition has no '='"));
  EXPECT_THAT(ParseWhere("country=US;;"), FailsWith(kInvalid, "a condition has no '='"));
  EXPECT_THAT(ParseWhere("=US"), FailsWith(kInvalid, "a segment key has no name"));
  EXPECT_THAT(ParseWhere("a=1;a=2"), FailsWith(kInvalid, "segment key 'a' is named twice"));
  EXPECT_THAT(ParseWhere("a=1,*"), FailsWith(kInvalid, "a * stands alone"));
}

TEST(FilterText, FiltersHaveNames) {
  const auto filter = ParseFilter("north:country=US,CA;app=web");
  ASSERT_OK(filter);
  EXPECT_EQ(filter->name, "north");
  EXPECT_EQ(filter->where, (Where{{"country", Of({"US", "CA"})}, {"app", Of({"web"})}}));
  EXPECT_EQ(ParseFilter(R"(a\:b:)")->name, "a:b");
  EXPECT_TRUE(ParseFilter("all:")->where.empty());
  EXPECT_THAT(ParseFilter("country=US"), FailsWith(absl::StatusCode::kInvalidArgument, "has no name"));
  EXPECT_THAT(ParseFilter(":country=US"), FailsWith(absl::StatusCode::kInvalidArgument, "the name is empty"));
  EXPECT_THAT(ParseFilter("north:country"), FailsWith(absl::StatusCode::kInvalidArgument, "has no '='"));
}

TEST(FilterText, ConditionsAddUp) {
  Where where = Parsed("country=US");
  ASSERT_OK(AddWhere(Parsed("app=web"), where));
  EXPECT_EQ(where.size(), 2u);
  EXPECT_THAT(AddWhere(Parsed("app=ios"), where),
              FailsWith(absl::StatusCode::kInvalidArgument, "segment key 'app' is named twice"));
}

}  // namespace
}  // namespace kvstore::cli
