#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "reports/json_operations.h"
#include "tests/reports/json_fixture.h"

/// Writes and changes of reports as JSON.
namespace kvstore::reports {
namespace {

using kvstore::testing::kDay;
using kvstore::testing::ReportsJson;

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

TEST_F(ReportsJson, IntegersStayExact) {
  const std::string point = R"({"op":"write_points","report":"flights","points":[{"metric":"departures",
      "time":"2013-01-01","segments":{"carrier":"UA","origin":"EWR"},"value":)";
  Ok(point + "\"9007199254740993\"}]}");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], "9007199254740993");
  Invalid(point + "9223372036854775808}]}", "points[0].value: must be a number");
  Invalid(point + "9223372036854775808}]}", "from -9223372036854775808 to 9223372036854775807");
  // A parser makes real numbers of these, without their last digits.
  Invalid(point + "18446744073709551616}]}", "points[0].value: an integer beyond 64 bits");
  Invalid(point + "-9223372036854775809}]}", "points[0].value: an integer beyond 64 bits");
  Ok(point + "-9223372036854775808}]}");
  EXPECT_EQ(Query(R"("metrics":["departures"])")[0]["points"][0][1], "-9223372036854775808");
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

TEST_F(ReportsJson, MetricsAreListedInPages) {
  EXPECT_EQ(Ok(R"({"op":"list_metrics","report":"flights","prefix":"de","limit":1})"),
            Json::parse(R"({"metrics":[{"name":"delay","kind":"distribution"}],"more":true})"));
  EXPECT_EQ(Ok(R"({"op":"list_metrics","report":"flights","prefix":"de","after":"delay"})"),
            Json::parse(R"({"metrics":[{"name":"departures","kind":"value"}],"more":false})"));
  EXPECT_EQ(Ok(R"({"op":"list_metrics","report":"flights"})")["metrics"].size(), 4u);
  Invalid(R"({"op":"list_metrics","report":"flights","limit":5001})", "limit");
  Fails(R"({"op":"list_metrics","report":"none"})", absl::StatusCode::kNotFound, "'none'");
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

TEST_F(ReportsJson, BadChangesNameTheField) {
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
}

}  // namespace
}  // namespace kvstore::reports
