#include "cli/reports/query_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kvstore::cli {
namespace {

/// 2013-03-31T10:30:00Z
constexpr int64_t kNow = 1'364'725'800'000;

/// Parses a command line of `kv report query` that ends with these words.
QueryArguments Parse(std::vector<std::string> words) {
  QueryArguments arguments;
  CLI::App app;
  arguments.AddTo(app);
  words.insert(words.begin(), {"flights", "departures"});
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return arguments;
}

reports::Query QueryOf(const std::vector<std::string>& words) { return Parse(words).ToQuery(kNow); }

/// The message of the usage error.
std::string MistakeIn(const std::vector<std::string>& words) {
  try {
    QueryOf(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "none";
}

TEST(QueryArguments, HaveDefaults) {
  const reports::Query query = QueryOf({});
  EXPECT_EQ(query.report, "flights");
  ASSERT_EQ(query.metrics.size(), 1u);
  EXPECT_EQ(query.metrics[0].name, "departures");
  EXPECT_EQ(query.from, kNow - int64_t{30} * 86'400'000);
  EXPECT_EQ(query.to, kNow);
  EXPECT_FALSE(query.step);
  EXPECT_TRUE(query.filters.empty());
  EXPECT_TRUE(query.group_by.empty());
  EXPECT_EQ(query.function.kind, reports::Function::Kind::kSum);
  EXPECT_FALSE(query.top);
  EXPECT_FALSE(query.compare_step);
  EXPECT_EQ(query.fill, reports::Fill::kNone);
  EXPECT_FALSE(query.partial);
}

TEST(QueryArguments, AreAllRead) {
  const reports::Query query = QueryOf({"late",       "--as",       "rate=late / departures",
                                        "--from",     "2013-01-01", "--to",
                                        "today",      "--zone",     "Europe/Berlin",
                                        "--step",     "1d",         "--by",
                                        "carrier",    "--by",       "origin",
                                        "--function", "p99.9",      "--top",
                                        "5:max",      "--fill",     "previous",
                                        "--compare",  "-7d",        "--partial",
                                        "--explain"});
  ASSERT_EQ(query.metrics.size(), 3u);
  EXPECT_EQ(query.metrics[1].name, "late");
  EXPECT_EQ(query.metrics[2].name, "rate");
  EXPECT_EQ(query.metrics[2].expression, "late / departures");
  EXPECT_EQ(query.from, 1'356'998'400'000 - 3'600'000);
  EXPECT_EQ(query.to, 1'364'684'400'000);
  EXPECT_EQ(*query.step, (reports::Step{reports::Step::Unit::kDays, 1}));
  EXPECT_EQ(query.group_by, (std::vector<std::string>{"carrier", "origin"}));
  EXPECT_EQ(query.function.percentile, 99.9);
  EXPECT_EQ(query.top->n, 5u);
  EXPECT_EQ(query.top->by.kind, reports::Function::Kind::kMax);
  EXPECT_EQ(query.fill, reports::Fill::kPrevious);
  EXPECT_EQ(*query.compare_step, (reports::Step{reports::Step::Unit::kDays, 7}));
  EXPECT_EQ(query.compare_sign, -1);
  EXPECT_TRUE(query.partial);
  EXPECT_TRUE(query.explain);
}

TEST(QueryArguments, TimesMayBeginWithAMinus) {
  EXPECT_EQ(QueryOf({"--from", "-7d", "--to", "-1d"}).from, kNow - int64_t{7} * 86'400'000);
}

TEST(QueryArguments, TopIsByTheFunctionUnlessItSaysOtherwise) {
  EXPECT_EQ(QueryOf({"--top", "3", "--function", "max"}).top->by.kind, reports::Function::Kind::kMax);
}

TEST(QueryArguments, ConditionsOfWhereAreOneFilterWithoutAName) {
  const reports::Query query = QueryOf({"--where", "carrier=UA,AA", "--where", "origin=EWR"});
  ASSERT_EQ(query.filters.size(), 1u);
  EXPECT_EQ(query.filters[0].name, "");
  EXPECT_EQ(query.filters[0].where.size(), 2u);
}

TEST(QueryArguments, OrArePartOfEachFilter) {
  const reports::Query query =
      QueryOf({"--where", "origin=EWR", "--filter", "united:carrier=UA", "--filter", "all:"});
  ASSERT_EQ(query.filters.size(), 2u);
  EXPECT_EQ(query.filters[0].name, "united");
  EXPECT_EQ(query.filters[0].where.size(), 2u);
  EXPECT_EQ(query.filters[1].where.size(), 1u);
}

TEST(QueryArguments, MistakesNameTheOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--from", "soon"}, "--from: 'soon' is not a time"},
      {{"--to", "-7x"}, "--to: '-7x' is not a time"},
      {{"--from", "2013-02-01", "--to", "2013-01-01"},
       "--to: 2013-01-01T00:00:00Z is before --from, which is 2013-02-01T00:00:00Z"},
      {{"--zone", "Berlin"}, "this machine knows no zone 'Berlin'"},
      {{"--step", "1"}, "--step: '1' is not a stretch of time"},
      {{"--function", "median"}, "there is no function 'median'; there are sum, count"},
      {{"--top", "0"}, "--top: '0'"},
      {{"--top", "5:median"}, "--top: '5:median': there is no function 'median'"},
      {{"--top", "five"}, "--top: 'five' is not a whole number"},
      {{"--compare", "7d"}, "--compare: '7d': give a sign and a stretch of time: -7d"},
      {{"--compare", "-7"}, "--compare: '-7'"},
      {{"--where", "carrier"}, "--where: 'carrier': a condition has no '='"},
      {{"--where", "carrier=UA", "--where", "carrier=AA"}, "--where: segment key 'carrier' is named twice"},
      {{"--filter", "carrier=UA"}, "--filter: 'carrier=UA': has no name"},
      {{"--where", "carrier=UA", "--filter", "a:carrier=AA"},
       "--filter: segment key 'carrier' is named twice"},
      {{"--as", "late / departures"}, "--as: 'late / departures': give NAME=EXPRESSION"},
      {{"--fill", "linear"}, "linear"},
  };
  for (const auto& [words, message] : mistakes) {
    EXPECT_NE(MistakeIn(words).find(message), std::string::npos) << MistakeIn(words);
  }
}

}  // namespace
}  // namespace kvstore::cli
