#include "promql/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore::promql {
namespace {

using Kind = reports::Function::Kind;
using Values = std::optional<std::vector<std::string>>;

std::string MessageOf(std::string_view query) { return std::string(Parse(query).status().message()); }

TEST(PromQl, ASelector) {
  ASSERT_OK_AND_ASSIGN(const Expression read,
                       Parse(R"(visits:views{country="DE", kind=~"a|b", app=~".*"} offset 1w)"));
  EXPECT_EQ(read.selector.report, "visits");
  EXPECT_EQ(read.selector.metric, "views");
  EXPECT_EQ(read.selector.where.at("country"), (Values{{"DE"}}));
  EXPECT_EQ(read.selector.where.at("kind"), (Values{{"a", "b"}}));
  EXPECT_EQ(read.selector.where.at("app"), std::nullopt);
  EXPECT_EQ(read.selector.offset_ms, 604'800'000);
  EXPECT_EQ(read.selector.range_ms, std::nullopt);
  EXPECT_EQ(read.function.kind, Kind::kLast);
  EXPECT_EQ(read.by, std::nullopt);
  EXPECT_EQ(read.top, std::nullopt);
}

TEST(PromQl, NamesThatAreNoneInPromQl) {
  ASSERT_OK_AND_ASSIGN(const Expression read,
                       Parse(R"({__name__="my report:page: views", "page view"='it\'s'})"));
  EXPECT_EQ(read.selector.report, "my report");
  EXPECT_EQ(read.selector.metric, "page: views");
  EXPECT_EQ(read.selector.where.at("page view"), (Values{{"it's"}}));
  ASSERT_OK_AND_ASSIGN(const Expression newer, Parse(R"(sum({"my report:views", country="DE"}))"));
  EXPECT_EQ(newer.selector.report, "my report");
}

TEST(PromQl, Aggregations) {
  for (const auto& [text, kind] : std::vector<std::pair<std::string, Kind>>{{"sum", Kind::kSum},
                                                                            {"avg", Kind::kAvg},
                                                                            {"min", Kind::kMin},
                                                                            {"max", Kind::kMax},
                                                                            {"count", Kind::kCount}}) {
    for (const std::string& query :
         {text + " by (country, app) (visits:views)", text + "(visits:views) by (country, app)",
          text + " by (country, app) (" + text + "_over_time(visits:views[1h]))"}) {
      const auto read = Parse(query);
      ASSERT_OK(read) << query;
      EXPECT_EQ(read->function.kind, kind) << query;
      EXPECT_EQ(read->by, (Values{{"country", "app"}})) << query;
    }
  }
  ASSERT_OK_AND_ASSIGN(const Expression all, Parse("sum(visits:views)"));
  EXPECT_EQ(all.by, (Values{std::vector<std::string>()}));
  ASSERT_OK_AND_ASSIGN(const Expression quantile, Parse("quantile by (country) (0.99, delays:ms[5m])"));
  EXPECT_EQ(quantile.function.kind, Kind::kPercentile);
  EXPECT_DOUBLE_EQ(quantile.function.percentile, 99);
  EXPECT_EQ(quantile.selector.range_ms, 300'000);
  ASSERT_OK_AND_ASSIGN(const Expression top, Parse("topk(3, sum by (country) (visits:views))"));
  EXPECT_EQ(top.top, 3u);
  ASSERT_OK_AND_ASSIGN(const Expression range, Parse("(max_over_time(visits:views[1h30m]))"));
  EXPECT_EQ(range.function.kind, Kind::kMax);
  EXPECT_EQ(range.selector.range_ms, 5'400'000);
  EXPECT_EQ(range.by, std::nullopt);
}

TEST(PromQl, ARegularExpressionMayEscapeMarks) {
  ASSERT_OK_AND_ASSIGN(const Expression read, Parse(R"(visits:views{app=~"a\\.b|c\\-d", kind=~`\(e\)\_`})"));
  EXPECT_EQ(read.selector.where.at("app"), (Values{{"a.b", "c-d"}}));
  EXPECT_EQ(read.selector.where.at("kind"), (Values{{"(e)_"}}));
}

TEST(PromQl, WhatIsNotAnsweredIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "REPORT:METRIC"},
      {"up", "'up' at 1: a series is named REPORT:METRIC"},
      {":views", "REPORT:METRIC"},
      {"rate(visits:views[5m])", "'rate' at 1: this function is not answered; these are: sum"},
      {"histogram_quantile(0.9, visits:views)", "'histogram_quantile'"},
      {"visits:views + 1", "'+' at 14: nothing may follow"},
      {"visits:views == 1", "'==' at 14"},
      {"sum without (country) (visits:views)", "'without' is not answered"},
      {"sum(avg_over_time(visits:views[1h]))", "the two must be the same"},
      {"sum_over_time(visits:views)", "needs a range"},
      {"visits:views[1h:5m]", "subqueries"},
      {"visits:views @ 1", "'@' is not answered"},
      {R"(visits:views{country!="DE"})", "only what matches"},
      {R"(visits:views{country=~"D.*"})", "compares whole values"},
      {R"(visits:views{country=~".+"})", "compares whole values"},
      {R"(visits:views{app=~`v\d`})", "compares whole values"},
      {R"(visits:views{app=~"v\\w"})", "compares whole values"},
      {R"(visits:views{app=~`v\1`})", "compares whole values"},
      {"visits:views{app=~`v\\\xC3\xA9`}", "compares whole values"},
      {R"(visits:views{app=~`v\`})", "compares whole values"},
      {R"(visits:views{country="DE", country="FR"})", "'country' at 28: is given twice"},
      {R"(visits:views{country="DE)", "the string does not end"},
      {R"(visits:views{country="\q"})", "is no escape"},
      {"visits:views{country=DE}", "a string must be here"},
      {"visits:views{country", "'=' must be here"},
      {"topk(0, visits:views)", "from 1 to"},
      {"topk(1.5, visits:views)", "whole number"},
      {"quantile(2, visits:views)", "from 0 to 1"},
      {"sum(visits:views", "the end at 17: ')' must be here"},
      {"visits:views[1x]", "a range must be here"},
      {"visits:views[0s]", "a range must be here"},
      {"visits:views offset 200y", "offset 1w"},
      {"visits:views)", "nothing may follow"},
      {std::string(200, '('), "more than"},
      {std::string(20'000, 'a'), "more than 10000 bytes"},
  };
  for (const auto& [query, message] : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(query).status())) << query;
    EXPECT_NE(MessageOf(query).find(message), std::string::npos) << query << "\n" << MessageOf(query);
  }
}

TEST(PromQl, Durations) {
  EXPECT_EQ(*ParseDurationMs("500ms"), 500);
  EXPECT_EQ(*ParseDurationMs("1h30m"), 5'400'000);
  EXPECT_EQ(*ParseDurationMs("1y"), 31'536'000'000);
  for (const char* wrong : {"", "5", "m", "5 m", "-5m", "1.5h", "99999999999999999999s", "101y", "0s", "5mm"})
    EXPECT_FALSE(ParseDurationMs(wrong).ok()) << wrong;
}

TEST(PromQl, ASumOfNumbers) {
  EXPECT_EQ(ParseSum("1+1"), 2);
  EXPECT_EQ(ParseSum(" 4 - 1.5 + 0.25 "), 2.75);
  EXPECT_EQ(ParseSum("7"), 7);
  for (const char* wrong : {"", "1+", "+1", "visits:views", "1*2", "1 1", "1s", "1..2", "\"1\""})
    EXPECT_EQ(ParseSum(wrong), std::nullopt) << wrong;
}

TEST(PromQl, AnyBytesAreReadOrRefused) {
  // The query is cut anywhere, and each of its bytes is changed.
  const std::string query =
      R"(topk(3, sum by (country) (sum_over_time(visits:views{a="b\"", c=~"d|e"}[1h] offset 5m))))";
  ASSERT_OK(Parse(query));
  for (size_t i = 0; i <= query.size(); ++i) {
    Parse(query.substr(0, i)).status().IgnoreError();
    for (const char c : {'\0', '"', '(', ')', '{', '\\', '\x80', '9'}) {
      std::string changed = query;
      if (i < changed.size()) changed[i] = c;
      const auto read = Parse(changed);
      EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read.status()));
    }
  }
}

}  // namespace
}  // namespace kvstore::promql
