#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kvstore_api/call_scope.h"
#include "reports/json_operations.h"
#include "tests/reports/json_fixture.h"

/// Queries as JSON.
namespace kvstore::reports {
namespace {

using kvstore::testing::kDay;
using kvstore::testing::kJanuary;
using kvstore::testing::ReportsJson;

TEST_F(ReportsJson, GroupsFillsAndRanks) {
  Load();
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"], Json::parse("[[1356998400000,171]]"));
  const Json groups = Query(R"("metrics":["departures"],"group_by":["carrier"])");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0]["segments"]["carrier"], "AA");
  EXPECT_EQ(groups[0]["points"][0][1], 3 + 4 + 9 + 10 + 15 + 16);
  const Json top =
      Query(R"("metrics":["departures"],"group_by":["carrier","origin"],"top":{"n":2,"by":"max"})");
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0]["segments"], Json::parse(R"({"carrier":"B6","origin":"JFK"})"));
  EXPECT_EQ(top[1]["segments"], Json::parse(R"({"carrier":"B6","origin":"EWR"})"));
  const std::string daily = R"("metrics":["departures"],"step":"1d","to":"2013-01-06","fill":)";
  const auto filled = [&](const char* fill) {
    return Ok(R"({"op":"query_report","report":"flights","from":"2012-12-31",)" + daily + "\"" + fill +
              "\"}")["series"][0]["points"];
  };
  EXPECT_EQ(filled("none"), Json({{kJanuary, 21}, {kJanuary + kDay, 57}, {kJanuary + 3 * kDay, 93}}));
  EXPECT_EQ(filled("zero"), Json({{kJanuary - kDay, 0},
                                  {kJanuary, 21},
                                  {kJanuary + kDay, 57},
                                  {kJanuary + 2 * kDay, 0},
                                  {kJanuary + 3 * kDay, 93},
                                  {kJanuary + 4 * kDay, 0}}));
  EXPECT_EQ(filled("previous"), Json({{kJanuary, 21},
                                      {kJanuary + kDay, 57},
                                      {kJanuary + 2 * kDay, 57},
                                      {kJanuary + 3 * kDay, 93},
                                      {kJanuary + 4 * kDay, 93}}));
}

TEST_F(ReportsJson, FiltersAreInTheirOrderAndMayBeEmpty) {
  Load();
  const Json series =
      Query(R"("metrics":["departures"],"filters":[{"name":"b","where":{"carrier":["UA","AA"]}},
      {"name":"a","where":{"origin":["JFK"],"carrier":"*"}},{"name":"nobody","where":{"carrier":["??"]}},{}])");
  ASSERT_EQ(series.size(), 4u);
  EXPECT_EQ(series[0]["filter"], "b");
  EXPECT_EQ(series[0]["points"][0][1], 1 + 2 + 3 + 4 + 7 + 8 + 9 + 10 + 13 + 14 + 15 + 16);
  EXPECT_EQ(series[1]["points"][0][1], 2 + 4 + 6 + 8 + 10 + 12 + 14 + 16 + 18);
  EXPECT_EQ(series[2]["points"], Json::array());
  EXPECT_EQ(series[3]["points"][0][1], 171);
}

TEST_F(ReportsJson, ExpressionsAreOverTheMetricsOfAStep) {
  Load();
  Ok(R"({"op":"write_points","report":"flights","points":[
     {"metric":"late","time":"2013-01-02T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":19}]})");
  const Json series =
      Query(R"("metrics":[{"name":"rate","expression":"late / departures"},"late"],"step":"1d")");
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0]["metric"], "rate");
  EXPECT_EQ(series[0]["points"], Json::array({Json::array({kJanuary + kDay, 19.0 / 57})}))
      << "gaps stay gaps";
  EXPECT_EQ(series[1]["points"][0][1], 19);
}

TEST_F(ReportsJson, AGapOfOneMetricIsFilledBeforeTheExpression) {
  Load();
  Ok(R"({"op":"write_points","report":"flights","points":[
     {"metric":"late","time":"2013-01-02T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":19}]})");
  const auto filled = [&](const char* fill) {
    return Ok(R"({"op":"query_report","report":"flights","from":"2013-01-01","to":"2013-01-05","step":"1d",
        "metrics":[{"name":"both","expression":"late + departures"}],"fill":")" +
              std::string(fill) + "\"}")["series"][0]["points"];
  };
  const int64_t second = kJanuary + kDay;
  EXPECT_EQ(filled("none"), Json::array({Json::array({second, 76})}));
  EXPECT_EQ(filled("zero"),
            Json({{kJanuary, 21}, {second, 76}, {kJanuary + 2 * kDay, 0}, {kJanuary + 3 * kDay, 93}}));
  EXPECT_EQ(filled("previous"),
            Json({{second, 76}, {kJanuary + 2 * kDay, 76}, {kJanuary + 3 * kDay, 93 + 19}}));
}

TEST_F(ReportsJson, ZeroDoesNotDivideAlsoWhereItFillsAGap) {
  Load();
  const Json series =
      Query(R"("metrics":[{"name":"rate","expression":"departures / late"}],"step":"1d","fill":"zero")");
  ASSERT_EQ(series[0]["points"].size(), 31u);
  for (const Json& point : series[0]["points"]) EXPECT_EQ(point[1], 0);
}

TEST_F(ReportsJson, ComparesDaysOfAZoneThatAreNotEquallyLong) {
  // Clocks went forward in New York on 10 March 2013, so that this day had 23 hours.
  std::string points;
  for (int64_t hour = 0; hour < 9 * 24; ++hour) {
    points += std::string(points.empty() ? "" : ",") + R"({"metric":"departures","time":)" +
              std::to_string(1'362'873'600'000 + hour * 3'600'000) +
              R"(,"segments":{"carrier":"UA","origin":"EWR"},"value":1})";
  }
  Ok(R"({"op":"write_points","report":"flights","points":[)" + points + "]}");
  const Json series =
      Ok(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-03-17",
      "to":"2013-03-18","timezone":"America/New_York","step":"1d","compare_to":"-7d"})")["series"];
  EXPECT_EQ(series[0]["points"], Json::array({Json::array({1'363'492'800'000, 24})}));
  EXPECT_EQ(series[0]["compared"], Json::array({Json::array({1'362'891'600'000, 23})}));
}

TEST_F(ReportsJson, EqualRanksAreInTheOrderOfTheirSegments) {
  std::string points;
  for (const char* carrier : {"UA", "B6", "AA", "DL", "9E"}) {
    points += std::string(points.empty() ? "" : ",") +
              R"({"metric":"departures","time":"2013-01-01","segments":{"carrier":")" + carrier +
              R"(","origin":"EWR"},"value":5})";
  }
  Ok(R"({"op":"write_points","report":"flights","points":[)" + points + "]}");
  const Json top = Query(R"("metrics":["departures"],"group_by":["carrier"],"top":{"n":3,"by":"sum"})");
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0]["segments"]["carrier"], "9E");
  EXPECT_EQ(top[1]["segments"]["carrier"], "AA");
  EXPECT_EQ(top[2]["segments"]["carrier"], "B6");
}

TEST_F(ReportsJson, AFilterThatIsNoListIsRefused) {
  for (const char* values : {R"("US")", "7", "{}", "null"}) {
    Fails(
        fmt::format(R"({{"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01",
                          "to":"2013-02-01","filters":[{{"where":{{"carrier":{}}}}}]}})",
                    values),
        absl::StatusCode::kInvalidArgument, "filters[0].where.carrier: must be a list of values");
  }
  for (const char* what : {R"("metrics":[],"from":0,"to":1)", R"("metrics":["delay"],"from":2,"to":1)"}) {
    Fails(fmt::format(R"({{"op":"delete_points","report":"flights",{}}})", what),
          absl::StatusCode::kInvalidArgument, "");
  }
}

TEST_F(ReportsJson, AFilterThatRepeatsAValueCountsItOnce) {
  Load();
  const Json series = Query(
      R"("metrics":["departures"],"filters":[{"where":{"carrier":["UA","UA","UA"],"origin":["EWR","EWR"]}}])");
  EXPECT_EQ(series[0]["points"][0][1], 1 + 7 + 13);
}

TEST_F(ReportsJson, ComparesWithAnotherTime) {
  Load();
  const Json answer =
      Ok(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-02",
      "to":"2013-01-03","step":"1d","compare_to":"-1d"})");
  EXPECT_EQ(answer["series"][0]["points"], Json::array({Json::array({kJanuary + kDay, 57})}));
  EXPECT_EQ(answer["series"][0]["compared"], Json::array({Json::array({kJanuary, 21})}));
}

TEST_F(ReportsJson, AQueryExplainsItself) {
  Load();
  const std::string query =
      R"({"op":"query_report","report":"flights","metrics":["departures","late"],"from":"2013-01-01","to":"2013-02-01")";
  EXPECT_FALSE(Ok(query + "}").contains("parts"));
  const Json answer = Ok(query + R"(,"explain":true})");
  ASSERT_EQ(answer["parts"].size(), 2u * 4u) << "each metric has four salts";
  uint64_t rows = 0;
  for (size_t i = 0; i < answer["parts"].size(); ++i) {
    EXPECT_EQ(answer["parts"][i]["metric"], i < 4 ? "departures" : "late");
    EXPECT_EQ(answer["parts"][i]["salt"], i % 4);
    rows += answer["parts"][i]["rows"].get<uint64_t>();
  }
  EXPECT_EQ(rows, answer["cost"]["rows"]);
}

TEST_F(ReportsJson, OnePassAnswersAThousandFilters) {
  Load();
  std::string filters;
  for (int i = 0; i < 1'000; ++i) {
    filters +=
        std::string(i == 0 ? "" : ",") + R"({"where":{"carrier":["UA","c)" + std::to_string(i) + "\"]}}";
  }
  const auto cost = [&](const std::string& list) {
    return Ok(
        R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01","to":"2013-02-01",
        "filters":[)" +
        list + "]}")["cost"];
  };
  const Json one = cost(R"({"where":{"carrier":["UA"]}})");
  const Json many = cost(filters);
  EXPECT_EQ(many["rows"], one["rows"]);
  EXPECT_EQ(many["chunks"], one["chunks"]);
  EXPECT_EQ(many["bytes"], one["bytes"]);
  Invalid(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":0,"to":1,"filters":[)" +
              filters + ",{}]}",
          "the limit is 1000");
}

TEST_F(ReportsJson, ChunksThatCannotMatchAreSkipped) {
  Load();
  const auto cost = [&](const std::string& carrier, const std::string& from) {
    return Ok(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":")" + from +
              R"(","to":"2013-02-01","filters":[{"where":{"carrier":[")" + carrier + R"("]}}]})")["cost"];
  };
  const Json all = cost("UA", "2013-01-01");
  EXPECT_GT(all["chunks"], 0);
  EXPECT_EQ(cost("ZZ", "2013-01-01")["chunks"], 0);
  EXPECT_EQ(cost("UA", "2013-01-05")["chunks"], 0);
  EXPECT_GT(cost("UA", "2013-01-05")["chunks_skipped"], 0);
}

TEST_F(ReportsJson, WhatCannotBeReachedFailsTheQueryOrIsNamed) {
  Load();
  store_.before_read = [](std::string_view row) {
    return row[0] == 1 ? absl::UnavailableError("shard 7 on host MySQL001A") : absl::OkStatus();
  };
  const std::string query =
      R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01",
      "to":"2013-02-01","partial":)";
  Fails(query + "false}", absl::StatusCode::kUnavailable, "MySQL001A");
  const Json answer = Ok(query + "true}");
  EXPECT_EQ(answer["partial"], true);
  EXPECT_NE(answer["missing"][0].get<std::string>().find("MySQL001A"), std::string::npos);
  ASSERT_EQ(answer["series"][0]["points"].size(), 1u);
  EXPECT_LT(answer["series"][0]["points"][0][1], 171);
}

TEST_F(ReportsJson, TheCallersDeadlineEndsAQuery) {
  Load();
  const CallScope scope{CallLimits{.deadline = CallLimits::Clock::now() - std::chrono::seconds(1)}};
  Fails(
      R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01","to":"2013-02-01"})",
      absl::StatusCode::kDeadlineExceeded, "");
}

TEST_F(ReportsJson, BadQueriesNameTheField) {
  const auto query = [](const std::string& fields) {
    return R"({"op":"query_report","report":"flights","from":"2013-01-01","to":"2013-02-01",)" + fields + "}";
  };
  Invalid(query(R"("metrics":[])"), "metrics: 0 are asked for");
  Invalid(query(R"("metrics":["departures"],"group_by":["x"])"),
          "group_by: report 'flights' has no segment key 'x'");
  Invalid(query(R"("metrics":["departures"],"filters":[{"where":{"x":["y"]}}])"),
          "filters: report 'flights'");
  Invalid(query(R"("metrics":["departures"],"timezone":"Mars/Phobos")"), "timezone");
  Invalid(query(R"("metrics":["departures"],"function":"median")"),
          "function: there is no function 'median'");
  Invalid(query(R"("metrics":["planes"],"function":"sum")"), "distinct alone");
  Invalid(query(R"("metrics":["departures"],"compare_to":"7d")"), "compare_to");
  Invalid(query(R"("metrics":["departures"],"fill":"linear")"), "fill: must be none, zero or previous");
  Fails(query(R"("metrics":["departures"],"step":"1ms")"), absl::StatusCode::kResourceExhausted,
        "100000 steps");
  Fails(query(R"("metrics":["none"])"), absl::StatusCode::kNotFound, "no metric 'none'");
}

}  // namespace
}  // namespace kvstore::reports
