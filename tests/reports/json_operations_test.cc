#include "reports/json_operations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "json/json.h"
#include "kvstore_api/call_scope.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::MemoryStore;

class ReportsJson : public ::testing::Test {
 protected:
  void SetUp() override {
    Ok(R"({"op":"create_report","report":"flights","segment_keys":["carrier","origin"],
           "metrics":[{"name":"departures"},{"name":"delay","kind":"distribution"},{"name":"planes","kind":"distinct"},
                      {"name":"late"}],
           "resolution":"1h","period":"30d","salts":4,"retention":"0"})");
  }

  JsonAnswer Do(const std::string& text) {
    auto request = ParseJson(text);
    EXPECT_OK(request);
    JsonFields fields(*request, "");
    const auto operation = JsonOperations().find(fields.String("op"));
    if (operation == JsonOperations().end()) return absl::UnimplementedError("no such operation");
    return operation->second(fields,
                             [this](const std::string& dataset) { return LocalReports(store_, dataset); });
  }
  Json Ok(const std::string& text) {
    auto answer = Do(text);
    EXPECT_OK(answer) << text;
    return answer.ok() ? *answer : Json();
  }
  void Fails(const std::string& text, absl::StatusCode code, const std::string& message) {
    EXPECT_THAT(Do(text), FailsWith(code, message)) << text;
  }
  void Invalid(const std::string& text, const std::string& message) {
    Fails(text, absl::StatusCode::kInvalidArgument, message);
  }
  /// Departures of some carriers from some airports on three days of January 2013.
  void Load() {
    std::string points;
    int value = 1;
    for (const char* day : {"2013-01-01", "2013-01-02", "2013-01-04"}) {
      for (const char* carrier : {"UA", "AA", "B6"}) {
        for (const char* origin : {"EWR", "JFK"}) {
          points += std::string(points.empty() ? "" : ",") + R"({"metric":"departures","time":")" + day +
                    R"(T05:00:00Z","segments":{"carrier":")" + carrier + R"(","origin":")" + origin +
                    R"("},"value":)" + std::to_string(value++) + "}";
        }
      }
    }
    EXPECT_EQ(Ok(R"({"op":"write_points","report":"flights","points":[)" + points + "]}")["written"], 18);
  }
  /// The series of a query of January, with further fields.
  Json Query(const std::string& fields) {
    return Ok(R"({"op":"query_report","report":"flights","from":"2013-01-01","to":"2013-02-01",)" + fields +
              "}")["series"];
  }

  MemoryStore store_;
};

constexpr int64_t kJanuary = 1'356'998'400'000;
constexpr int64_t kDay = 86'400'000;

TEST_F(ReportsJson, TheExampleOfTheDesign) {
  const Json written = Ok(R"({"op":"write_points","report":"flights","batch":"2013-01","points":[
     {"metric":"departures","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":3},
     {"metric":"delay","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"values":[4,-2,11]},
     {"metric":"planes","time":1357016400000,"segments":{"carrier":"UA","origin":"EWR"},"values":["N14228","N24211"]}],
     "add":false})");
  EXPECT_EQ(written, Json::parse(R"({"written":3})"));
  const Json answer =
      Ok(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01",
     "to":"2013-02-01","step":"1d","timezone":"UTC","filters":[{"name":"united","where":{"carrier":["UA"]}}],
     "group_by":["origin"],"function":"sum","top":{"n":5,"by":"sum"},"fill":"none","compare_to":"-7d","partial":false})");
  EXPECT_EQ(answer["series"],
            Json::parse(R"([{"metric":"departures","filter":"united","segments":{"origin":"EWR"},
     "points":[[1356998400000,3]],"compared":[[1356998400000,3]]}])"));
  EXPECT_EQ(answer["partial"], false);
  EXPECT_EQ(answer["cost"]["chunks"], 2) << "once for each of the two ranges";
  EXPECT_EQ(Query(R"("metrics":["delay"],"function":"count")")[0]["points"][0][1], 3);
  EXPECT_EQ(Query(R"("metrics":["delay"],"function":"p100")")[0]["points"][0][1], 11);
  EXPECT_EQ(Query(R"("metrics":["planes"],"function":"distinct")")[0]["points"][0][1], 2);
  const Json info = Ok(R"({"op":"report_info","report":"flights","metrics":["delay"]})");
  EXPECT_EQ(info["metrics"], Json::parse(R"([{"name":"delay","kind":"distribution"}])"));
  EXPECT_EQ(info["segment_values"], Json::parse(R"({"carrier":["UA"],"origin":["EWR"]})"));
  EXPECT_EQ(info["resolution"], "1h");
  EXPECT_EQ(info["period"], "30d");
}

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

TEST_F(ReportsJson, ABatchWithoutPointsIsNotRemembered) {
  const auto batch = [&](const std::string& points) {
    return Ok(R"({"op":"write_points","report":"flights","batch":"b","points":[)" + points + "]}")["written"];
  };
  const std::string point = R"({"metric":"departures","time":"2013-01-01",
      "segments":{"carrier":"UA","origin":"EWR"},"value":5})";
  EXPECT_EQ(batch(""), 0);
  EXPECT_EQ(batch(point), 1);
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 5);
}

TEST_F(ReportsJson, TheFirstAndTheLastTimeThatThereAre) {
  Ok(R"({"op":"create_report","report":"ends","metrics":["m"],"resolution":"1ms","period":"1s"})");
  Ok(R"({"op":"write_points","report":"ends","points":[{"metric":"m","time":0,"value":1},
      {"metric":"m","time":253402300799999,"value":2},{"metric":"m","time":"9999-12-31T23:59:59.999Z","value":3}]})");
  const std::string query = R"({"op":"query_report","report":"ends","metrics":["m"],"from":0,"to":)";
  EXPECT_EQ(Ok(query + "253402300800000}")["series"][0]["points"][0][1], 4);
  EXPECT_EQ(Ok(query + "253402300799999}")["series"][0]["points"][0][1], 1);
  EXPECT_EQ(Ok(query + R"(253402300800000,"step":"100y"})")["series"][0]["points"].size(), 2u);
  const auto write = [](const std::string& time) {
    return R"({"op":"write_points","report":"ends","points":[{"metric":"m","time":)" + time +
           R"(,"value":1}]})";
  };
  Invalid(write("-1"), "points[0].time");
  Invalid(write("\"1969-12-31T23:59:59.999Z\""), "1970 to 9999");
  Invalid(write("253402300800000"), "1970 to 9999");
}

TEST_F(ReportsJson, ComparesWithAnotherTime) {
  Load();
  const Json answer =
      Ok(R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-02",
      "to":"2013-01-03","step":"1d","compare_to":"-1d"})");
  EXPECT_EQ(answer["series"][0]["points"], Json::array({Json::array({kJanuary + kDay, 57})}));
  EXPECT_EQ(answer["series"][0]["compared"], Json::array({Json::array({kJanuary, 21})}));
}

TEST_F(ReportsJson, IntegersStayExact) {
  const std::string point = R"({"op":"write_points","report":"flights","points":[{"metric":"departures",
      "time":"2013-01-01","segments":{"carrier":"UA","origin":"EWR"},"value":)";
  Ok(point + "\"9007199254740993\"}]}");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], "9007199254740993");
  Invalid(point + "9223372036854775808}]}", "points[0].value: must be a number");
  Ok(point + "9223372036854775807}],\"add\":false}");
  Ok(point + "1}],\"add\":true}");
  Fails(
      R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01","to":"2013-02-01"})",
      absl::StatusCode::kFailedPrecondition, "64-bit integers");
}

TEST_F(ReportsJson, ABatchThatIsRepeatedCountsOnce) {
  const std::string add = R"({"op":"write_points","report":"flights","batch":"b1","add":true,"points":[
     {"metric":"departures","time":"2013-01-01","segments":{"carrier":"UA","origin":"EWR"},"value":5}]})";
  Ok(add);
  Ok(add);
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 5);
  std::string other = add;
  other.replace(other.find("b1"), 2, "b2");
  Ok(other);
  Ok(R"({"op":"compact_report","report":"flights"})");
  Ok(add);
  Ok(other);
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 10) << "also after a compaction";
  Ok(R"({"op":"compact_report","report":"flights"})");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 10);
}

TEST_F(ReportsJson, DeletesWhatIsThereAndNotWhatComesLater) {
  Load();
  EXPECT_GT(Ok(R"({"op":"delete_points","report":"flights","metrics":["departures"],"from":"2013-01-02",
      "to":"2013-01-03"})")["rows"],
            0);
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 171 - 57);
  Ok(R"({"op":"write_points","report":"flights","points":[
     {"metric":"departures","time":"2013-01-02","segments":{"carrier":"UA","origin":"EWR"},"value":5}]})");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 171 - 57 + 5);
  Ok(R"({"op":"compact_report","report":"flights"})");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], 171 - 57 + 5);
  Fails(R"({"op":"delete_points","report":"flights","metrics":["no such"],"from":0,"to":1})",
        absl::StatusCode::kNotFound, "no such");
}

TEST_F(ReportsJson, AKeyThatIsAddedHasItsDefaultInOlderPoints) {
  Load();
  Ok(R"({"op":"alter_report","report":"flights","add_segment_key":{"name":"dest","default":"?"},
      "add_metrics":["seats"]})");
  Ok(R"({"op":"write_points","report":"flights","points":[
     {"metric":"departures","time":"2013-01-02","segments":{"carrier":"UA","origin":"EWR","dest":"SFO"},"value":5},
     {"metric":"departures","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":1000}]})");
  const Json series = Query(R"("metrics":["departures"],"group_by":["dest"])");
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0]["segments"]["dest"], "?");
  EXPECT_EQ(series[0]["points"][0][1], 171 - 1 + 1'000)
      << "a point without the key replaces the one before it";
  EXPECT_EQ(series[1]["points"][0][1], 5);
  EXPECT_EQ(Query(R"("metrics":["departures"],"filters":[{"where":{"dest":["?"]}}])")[0]["points"][0][1],
            1'170);
}

TEST_F(ReportsJson, AChangeCanBeRepeated) {
  const std::string change =
      R"({"op":"alter_report","report":"flights","add_segment_key":{"name":"dest","default":"?"},
          "add_metrics":["seats"],"retention":"90d"})";
  Ok(change);
  Ok(change);
  EXPECT_EQ(Ok(R"({"op":"report_info","report":"flights"})")["segment_keys"].size(), 3u);
  Fails(R"({"op":"alter_report","report":"flights","add_segment_key":{"name":"dest","default":"!"}})",
        absl::StatusCode::kAlreadyExists, "'dest'");
}

TEST_F(ReportsJson, RollupsAreDeclaredShownAndMade) {
  Load();
  Ok(R"({"op":"alter_report","report":"flights","rollups":[{"keys":["carrier"],"step":"1d"},{"step":"6h"}]})");
  EXPECT_EQ(Ok(R"({"op":"report_info","report":"flights"})")["rollups"],
            Json::parse(R"([{"keys":["carrier"],"step":"1d"},{"keys":[],"step":"6h"}])"));
  const Json made = Ok(R"({"op":"make_rollups","report":"flights"})");
  EXPECT_GT(made["rows"], 0);
  const Json again = Ok(R"({"op":"make_rollups","report":"flights"})");
  EXPECT_EQ(again["rows"], made["rows"]);
  EXPECT_EQ(again["rows_written"], 0) << "nothing was written since";
  Ok(R"({"op":"alter_report","report":"flights","rollups":[]})");
  EXPECT_EQ(Ok(R"({"op":"report_info","report":"flights"})")["rollups"], Json::array());
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

TEST_F(ReportsJson, AReportIsListedAndDropped) {
  Load();
  EXPECT_EQ(Ok(R"({"op":"list_reports"})")["reports"], Json::array({"flights"}));
  Ok(R"({"op":"drop_report","report":"flights"})");
  EXPECT_EQ(Ok(R"({"op":"list_reports"})")["reports"], Json::array());
  Fails(R"({"op":"drop_report","report":"flights"})", absl::StatusCode::kNotFound, "'flights'");
  SetUp();
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"], Json::array())
      << "nothing of the old one shows";
}

TEST_F(ReportsJson, PointsBeyondTheRetentionAreGone) {
  const int64_t now = static_cast<int64_t>(WallClockMs() / 3'600'000 * 3'600'000);
  const auto write = [&](int64_t time, int value) {
    Ok(R"({"op":"write_points","report":"flights","points":[{"metric":"departures","time":)" +
       std::to_string(time) + R"(,"segments":{"carrier":"UA","origin":"EWR"},"value":)" +
       std::to_string(value) + "}]}");
  };
  write(now - 100 * kDay, 1);
  write(now - 2 * kDay, 2);
  const std::string all =
      R"({"op":"query_report","report":"flights","metrics":["departures"],"from":0,"to":)" +
      std::to_string(now + 1) + "}";
  EXPECT_EQ(Ok(all)["series"][0]["points"][0][1], 3);
  Ok(R"({"op":"alter_report","report":"flights","retention":"10d"})");
  EXPECT_EQ(Ok(all)["series"][0]["points"][0][1], 2);
  EXPECT_EQ(Ok(R"({"op":"compact_report","report":"flights"})")["rows_expired"], 1);
  Ok(R"({"op":"alter_report","report":"flights","retention":"0"})");
  EXPECT_EQ(Ok(all)["series"][0]["points"][0][1], 2) << "the old row has been removed";
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

TEST_F(ReportsJson, BadRequestsNameTheField) {
  Invalid(R"({"op":"create_report","report":"r","salts":65})", "salts");
  Invalid(R"({"op":"create_report","report":"r","resolution":"1mo"})",
          "resolution: must have a fixed length");
  Invalid(R"({"op":"create_report","report":"r","colour":"red"})", "colour: unknown field");
  Invalid(R"({"op":"create_report","report":"r","metrics":[{"name":"m","kind":"x"}]})", "metrics[0].kind");
  Invalid(R"({"op":"alter_report","report":"flights","rollups":{}})", "rollups");
  Invalid(R"({"op":"alter_report","report":"flights","rollups":[{"keys":["carrier"]}]})",
          "rollups[0].step: missing");
  Invalid(R"({"op":"alter_report","report":"flights","rollups":[{"keys":["carrier"],"step":"1mo"}]})",
          "rollups[0].step: must have a fixed length");
  Invalid(R"({"op":"alter_report","report":"flights","rollups":[{"step":"1d","salts":1}]})",
          "rollups[0].salts: unknown field");
  const auto point = [](const std::string& fields) {
    return R"({"op":"write_points","report":"flights","points":[{"metric":"departures","time":"2013-01-01",
        "segments":{"carrier":"UA","origin":"EWR"},"value":1},{)" +
           fields + "}]}";
  };
  Invalid(point(R"("metric":"departures","time":"2013-01-01","segments":{"carrier":"UA"},"value":1)"),
          "points[1].segments: 'origin' is missing");
  Invalid(
      point(
          R"("metric":"departures","time":"2013-01-01T00:30:00Z","segments":{"carrier":"U","origin":"E"},"value":1)"),
      "points[1].time: 1357000200000 ms is not a multiple of the report's resolution of 1h");
  Invalid(point(R"("metric":"delay","time":"2013-01-01","segments":{"carrier":"U","origin":"E"},"value":1)"),
          "points[1].metric 'delay' is of kind distribution");
  Invalid(
      point(R"("metric":"departures","time":"yesterday","segments":{"carrier":"U","origin":"E"},"value":1)"),
      "points[1].time");
  Invalid(
      point(R"("metric":"departures","time":0,"segments":{"carrier":"U","origin":"E","x":"y"},"value":1)"),
      "no segment key 'x'");
  Fails(point(R"("metric":"none","time":0,"segments":{"carrier":"U","origin":"E"},"value":1)"),
        absl::StatusCode::kNotFound, "points[1].metric");
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
