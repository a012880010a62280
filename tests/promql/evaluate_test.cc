#include "promql/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/reports.h"
#include "tests/fuzz/fuzz_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::promql {
namespace {

using reports::Number;

constexpr int64_t kBegin = 1'767'225'600'000;  // 2026-01-01
constexpr int64_t kHour = 3'600'000;

/// A report of two days with a point for each hour: views of DE are the hour of the day, those of FR 100. Its
/// users are a set, which has two members in DE at midnight and one of them an hour later.
class EvaluateTest : public ::testing::Test {
 protected:
  EvaluateTest() {
    const reports::ReportInfo info{.name = "visits",
                                   .keys = {{"country", "?"}, {"app", "?"}},
                                   .metrics = {{.name = "views"},
                                               {.name = "clicks"},
                                               {.name = "users", .kind = reports::MetricKind::kDistinct}}};
    EXPECT_OK(reports_->Create(info));
    reports::Batch batch(*reports_->Info("visits", {"views", "users"}));
    const std::vector<std::optional<std::string_view>> germany = {"DE", "web"};
    const std::vector<std::optional<std::string_view>> france = {"FR", "web"};
    for (int64_t hour = 0; hour < 48; ++hour) {
      EXPECT_OK(batch.Add(0, kBegin + hour * kHour, germany, Number::Integer(hour % 24)));
      EXPECT_OK(batch.Add(0, kBegin + hour * kHour, france, Number::Integer(100)));
    }
    const std::vector<std::string> users = {"ann", "bob"};
    EXPECT_OK(batch.AddDistinct(1, kBegin, germany, users));
    EXPECT_OK(batch.AddDistinct(1, kBegin + kHour, germany, {users.data(), 1}));
    EXPECT_OK(reports_->Write(batch, {}).status());
  }
  absl::StatusOr<Json> Ask(std::string_view query, const Times& times) {
    auto expression = Parse(query);
    if (!expression.ok()) return expression.status();
    return Evaluate(*reports_, *expression, times);
  }
  Json Result(std::string_view query, const Times& times) {
    auto answer = Ask(query, times);
    EXPECT_OK(answer) << query;
    return answer.ok() ? (*answer)["result"] : Json();
  }

  const testing::TempDir dir_;
  const std::unique_ptr<KVStore> store_ = testing::OpenEmbedded(dir_ / "store");
  const std::unique_ptr<reports::Reports> reports_ = reports::LocalReports(*store_, "reports");
};

TEST_F(EvaluateTest, AValueIsMadeOfTheStepBeforeItsTime) {
  const Json result =
      Result("sum by (country) (visits:views)",
             {.start_ms = kBegin + 2 * kHour, .end_ms = kBegin + 6 * kHour, .step_ms = 2 * kHour});
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0]["metric"], (Json{{"country", "DE"}}));
  EXPECT_EQ(result[0]["values"],
            Json::parse(R"([[1767232800.0, "1"], [1767240000.0, "5"], [1767247200.0, "9"]])"));
  EXPECT_EQ(result[1]["values"][2][1], "200");
}

TEST_F(EvaluateTest, TimesAreMultiplesOfTheStep) {
  // Also of steps that do not divide a day, and where the query begins at no round time.
  for (const int64_t hours : {5, 7, 25}) {
    const int64_t step = hours * kHour;
    const int64_t start = kBegin + 20 * kHour + 1'234'567;
    const int64_t first = (start / step + 1) * step;
    const Json result =
        Result("count(visits:views)", {.start_ms = start, .end_ms = first + step - 1, .step_ms = step});
    ASSERT_EQ(result.size(), 1u);
    EXPECT_EQ(result[0]["metric"], Json::object());
    const int64_t points = 2 * (first - std::max(first - step, kBegin)) / kHour;
    EXPECT_EQ(result[0]["values"],
              Json::array({Json::array({static_cast<double>(first) / 1000, std::to_string(points)})}));
    EXPECT_TRUE(
        Result("count(visits:views)", {.start_ms = first + 1, .end_ms = first + 2, .step_ms = step}).empty());
  }
}

TEST_F(EvaluateTest, ASelectorAloneIsTheLastPointOfEachSeries) {
  const Json result =
      Result(R"(visits:views{country="DE"})",
             {.start_ms = kBegin + 24 * kHour, .end_ms = kBegin + 24 * kHour, .step_ms = 24 * kHour});
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0]["metric"], (Json{{"__name__", "visits:views"}, {"country", "DE"}, {"app", "web"}}));
  EXPECT_EQ(result[0]["values"][0][1], "23");
}

TEST_F(EvaluateTest, OnceOverARange) {
  const Json result =
      Result("sum by (country) (sum_over_time(visits:views[1d]))", {.end_ms = kBegin + 24 * kHour});
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0]["value"], Json::parse(R"([1767312000.0, "276"])"));
  // Without one, of the five minutes before.
  EXPECT_EQ(Result("sum(visits:views)", {.end_ms = kBegin + 60'000})[0]["value"][1], "100");
  EXPECT_TRUE(Result("sum(visits:views)", {.end_ms = kBegin + 600'000}).empty());
}

TEST_F(EvaluateTest, OffsetsTopAndQuantiles) {
  const Times second_day{.start_ms = kBegin + 25 * kHour, .end_ms = kBegin + 26 * kHour, .step_ms = kHour};
  EXPECT_EQ(Result("sum(visits:views offset 1h)", second_day)[0]["values"],
            Json::parse(R"([[1767315600.0, "123"], [1767319200.0, "100"]])"));
  const Json top = Result("topk(1, sum by (country) (visits:views))", second_day);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0]["metric"]["country"], "FR");
  EXPECT_EQ(
      Result("quantile by (country) (0.5, visits:views[1d])", {.end_ms = kBegin + 24 * kHour})[1]["value"][1],
      "100");
}

TEST_F(EvaluateTest, WhatCannotBeAnsweredSaysWhy) {
  const auto message = [this](std::string_view query, const Times& times) {
    return std::string(Ask(query, times).status().message());
  };
  const Times good{.start_ms = kBegin, .end_ms = kBegin + kHour, .step_ms = kHour};
  EXPECT_NE(message("sum_over_time(visits:views[5m])", good).find("as long as the step"), std::string::npos);
  EXPECT_NE(
      message("visits:views", {.start_ms = 2, .end_ms = 1, .step_ms = kHour}).find("end: is before start"),
      std::string::npos);
  EXPECT_NE(message("visits:views", {.start_ms = 0, .end_ms = kBegin, .step_ms = 1}).find("step: "),
            std::string::npos);
  EXPECT_NE(message("visits:views", {.start_ms = 0, .end_ms = 0, .step_ms = kHour}).find("before 1970"),
            std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(Ask("visits:nothing", good).status()));
  EXPECT_TRUE(absl::IsNotFound(Ask("nothing:views", good).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("sum by (city) (visits:views)", good).status()));
  // More steps than a report answers.
  EXPECT_FALSE(
      Ask("visits:views", {.start_ms = kBegin, .end_ms = kBegin + 1'000'000'000, .step_ms = 1'000}).ok());
}

TEST_F(EvaluateTest, NamesAndValues) {
  EXPECT_EQ(*SeriesNames(*reports_, std::nullopt, 100),
            Json::parse(R"(["visits:clicks", "visits:users", "visits:views"])"));
  EXPECT_EQ(SeriesNames(*reports_, "visits", 1)->size(), 1u);
  EXPECT_EQ(*LabelNames(*reports_, std::nullopt), Json::parse(R"(["__name__", "app", "country"])"));
  EXPECT_EQ(*LabelValues(*reports_, "visits", "country"), Json::parse(R"(["?", "DE", "FR"])"));
  EXPECT_EQ(*LabelValues(*reports_, std::nullopt, "nothing"), Json::array());
  ASSERT_OK_AND_ASSIGN(const Selector selector, ParseSelector(R"(visits:views{country="FR"})"));
  EXPECT_EQ(*SeriesOf(*reports_, selector, {.start_ms = kBegin, .end_ms = kBegin + kHour}),
            Json::parse(R"([{"__name__": "visits:views", "country": "FR", "app": "web"}])"));
  EXPECT_TRUE(SeriesOf(*reports_, selector, {.start_ms = 1, .end_ms = 2})->empty());
}

TEST_F(EvaluateTest, SeriesHaveBothEndsOfTheirTime) {
  ASSERT_OK_AND_ASSIGN(const Selector selector, ParseSelector("visits:views"));
  EXPECT_EQ(SeriesOf(*reports_, selector, {.start_ms = 0, .end_ms = kBegin})->size(), 2u);
  EXPECT_EQ(SeriesOf(*reports_, selector, {.start_ms = kBegin, .end_ms = kBegin})->size(), 2u);
  EXPECT_TRUE(SeriesOf(*reports_, selector, {.start_ms = 0, .end_ms = kBegin - 1})->empty());
  EXPECT_THAT(SeriesOf(*reports_, selector, {.start_ms = 2, .end_ms = 1}),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "end: is before start"));
}

TEST_F(EvaluateTest, ACountOfASetIsThatOfItsMembers) {
  const Times day{.end_ms = kBegin + 24 * kHour};
  EXPECT_EQ(Result("count(visits:users[1d])", day)[0]["value"][1], "2");
  EXPECT_EQ(Result("count_over_time(visits:users[1d])", day)[0]["value"][1], "2");
  const Json top = Result("topk(1, count by (country) (visits:users))",
                          {.start_ms = kBegin + kHour, .end_ms = kBegin + 2 * kHour, .step_ms = kHour});
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0]["values"], Json::parse(R"([[1767229200.0, "2"], [1767232800.0, "1"]])"));
  for (const char* query : {"visits:users[1d]", "sum(visits:users[1d])", "quantile(0.5, visits:users[1d])"}) {
    EXPECT_THAT(Ask(query, day), testing::FailsWith(absl::StatusCode::kInvalidArgument,
                                                    "'users' of report 'visits' is of kind"))
        << query;
  }
  ASSERT_OK_AND_ASSIGN(const Selector selector, ParseSelector("visits:users"));
  EXPECT_EQ(*SeriesOf(*reports_, selector, {.start_ms = kBegin, .end_ms = kBegin + kHour}),
            Json::parse(R"([{"__name__": "visits:users", "country": "DE", "app": "web"}])"));
}

TEST_F(EvaluateTest, AStoreWithoutReportsHasNoNames) {
  const testing::TempDir dir;
  const auto store = testing::OpenEmbedded(dir / "store");
  const auto none = reports::LocalReports(*store, "reports");
  EXPECT_EQ(*SeriesNames(*none, std::nullopt, 100), Json::array());
  EXPECT_EQ(*LabelNames(*none, std::nullopt), Json::parse(R"(["__name__"])"));
}

TEST(ValueText, IsThatOfPrometheus) {
  EXPECT_EQ(ValueText(Number::Integer(-42)), "-42");
  EXPECT_EQ(ValueText(Number::Integer(9'007'199'254'740'993)), "9007199254740993");
  EXPECT_EQ(ValueText(Number::Real(0.1)), "0.1");
  EXPECT_EQ(ValueText(Number::Real(std::numeric_limits<double>::infinity())), "+Inf");
  EXPECT_EQ(ValueText(Number::Real(-std::numeric_limits<double>::infinity())), "-Inf");
  EXPECT_EQ(ValueText(Number::Real(std::nan(""))), "NaN");
}

}  // namespace
}  // namespace kvstore::promql
