#include "reports/plain_write.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json_text.h"
#include "tests/reports/json_fixture.h"
#include "tests/support/random.h"

/// A write_points that is read without a tree does what it does with one.
namespace kvstore::reports {
namespace {

using kvstore::testing::MemoryStore;
using kvstore::testing::Random;

class PlainWriteTest : public testing::ReportsJson {
 protected:
  void SetUp() override {
    ReportsJson::SetUp();
    ASSERT_OK(DoIn(plain_store_, testing::kCreateFlights));
  }

  /// Writes without a tree; nullopt if that gives up.
  std::optional<JsonAnswer> WritePlain(const std::string& text) {
    const auto write = PlainWrite::Read(text);
    if (!write) return std::nullopt;
    return write->CarryOut(
        [this](const std::string& dataset) { return LocalReports(plain_store_, dataset); });
  }
  /// Writes with a tree and without one. Returns whether it could be done without; then the answers must be
  /// the same.
  bool WriteBothWays(const std::string& text) {
    const auto plain = WritePlain(text);
    if (!plain) return false;
    const auto tree = Do(text);
    EXPECT_EQ(plain->status(), tree.status()) << text;
    if (plain->ok() && tree.ok()) {
      EXPECT_EQ(**plain, *tree) << text;
    }
    return true;
  }
  /// Expects that both stores have the same points.
  void ExpectSamePoints() {
    for (const auto& [metric, function] : {std::pair{"departures", "sum"}, std::pair{"late", "last"},
                                           std::pair{"delay", "p50"}, std::pair{"planes", "distinct"}}) {
      const std::string query = fmt::format(
          R"({{"op":"query_report","report":"flights","metrics":["{}"],"from":0,"to":"2014-01-01","step":"1d",)"
          R"("group_by":["carrier","origin"],"function":"{}"}})",
          metric, function);
      auto plain = DoIn(plain_store_, query);
      const auto tree = Do(query);
      ASSERT_OK(plain);
      ASSERT_OK(tree);
      EXPECT_EQ((*plain)["series"], (*tree)["series"]) << query;
    }
  }

  MemoryStore plain_store_;
};

constexpr std::string_view kPoint =
    R"({"metric":"departures","time":"2013-01-01","segments":{"carrier":"UA","origin":"EWR"},"value":3})";

std::string Write(std::string_view points, std::string_view fields = "") {
  return fmt::format(R"({{"op":"write_points","report":"flights"{},"points":[{}]}})", fields, points);
}

TEST_F(PlainWriteTest, TheExampleOfTheDesign) {
  const std::string text = R"({"op":"write_points","report":"flights","batch":"2013-01","points":[
     {"metric":"departures","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"value":3},
     {"metric":"delay","time":"2013-01-01T05:00:00Z","segments":{"carrier":"UA","origin":"EWR"},"values":[4,-2,11.5]},
     {"metric":"planes","time":1357016400000,"segments":{"carrier":"UA","origin":"EWR"},"values":["N14228","N24211"]}],
     "add":false,"id":"mine"})";
  const auto write = PlainWrite::Read(text);
  ASSERT_TRUE(write);
  EXPECT_EQ(write->points(), 3u);
  EXPECT_EQ(write->id(), Json("mine"));
  std::string without_id = text;
  without_id.replace(without_id.find(R"(,"id":"mine")"), 12, "");
  EXPECT_TRUE(WriteBothWays(without_id));
  EXPECT_TRUE(WriteBothWays(without_id)) << "again";
  ExpectSamePoints();
}

TEST_F(PlainWriteTest, FieldsMayComeInAnyOrder) {
  EXPECT_TRUE(WriteBothWays(fmt::format(
      R"( {{ "points" : [ {} , {{"value":1,"segments":{{"origin":"JFK","carrier":"AA"}},"time":0,"metric":"late"}} ],)"
      R"( "add":true, "dataset":"reports", "report":"flights", "op":"write_points" }} )",
      kPoint)));
  EXPECT_TRUE(WriteBothWays(Write("")));
  EXPECT_TRUE(WriteBothWays(
      Write(R"({"metric":"late","time":0,"segments":{"carrier":"Zürich","origin":""},"value":"-7"})")));
  ExpectSamePoints();
}

TEST_F(PlainWriteTest, ErrorsThatAreNotOfAPointAreTold) {
  const std::string batch = Write(kPoint, R"(,"batch":"b")");
  EXPECT_TRUE(WriteBothWays(batch));
  std::string other = batch;
  other.replace(other.find(R"("value":3)"), 9, R"("value":4)");
  EXPECT_TRUE(WriteBothWays(other)) << "a batch with other points under the same ID";
  EXPECT_TRUE(WriteBothWays(R"({"op":"write_points","report":"no such","points":[]})"));
  EXPECT_TRUE(WriteBothWays(R"({"op":"write_points","dataset":"no such","report":"flights","points":[]})"));
  ExpectSamePoints();
}

TEST_F(PlainWriteTest, WhatIsWrongIsLeftToTheTree) {
  for (
      const std::string& text : std::vector<std::string>{
          "",
          "[]",
          R"({"op":"list_reports"})",
          Write(kPoint, R"(,"more":1)"),
          Write(kPoint, R"(,"add":1)"),
          Write(kPoint, R"(,"id":1.5)"),
          Write(kPoint, R"(,"batch":7)"),
          R"({"report":"flights","points":[]})",
          R"({"op":"write_points","points":[]})",
          R"({"op":"write_points","report":"flights"})",
          R"({"op":"write_points","report":"flights","points":{}})",
          Write(std::string(kPoint) + ","),
          Write(std::string(kPoint)) + "x",
          Write("1"),
          Write("{}"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"UA"},"value":1})"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"UA","origin":7},"value":1})"),
          Write(
              R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E","x":"y"},"value":1})"),
          Write(R"({"metric":"departures","time":1,"segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":"departures","time":-1,"segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":"departures","time":"soon","segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":"departures","segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E"}})"),
          Write(
              R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E"},"value":1,"values":[1]})"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E"},"value":"x"})"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E"},"value":null})"),
          Write(R"({"metric":"departures","time":0,"segments":{"carrier":"U","origin":"E"},"values":[1]})"),
          Write(R"({"metric":"delay","time":0,"segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":"delay","time":0,"segments":{"carrier":"U","origin":"E"},"values":["a"]})"),
          Write(R"({"metric":"delay","time":0,"segments":{"carrier":"U","origin":"E"},"values":[]})"),
          Write(R"({"metric":"planes","time":0,"segments":{"carrier":"U","origin":"E"},"values":[1]})"),
          Write(R"({"metric":"no such","time":0,"segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(R"({"metric":7,"time":0,"segments":{"carrier":"U","origin":"E"},"value":1})"),
          Write(std::string(kPoint) + R"(,{"metric":"late","time":0,"value":1})")}) {
    EXPECT_FALSE(WritePlain(text)) << text;
    if (text.find("write_points") != std::string::npos && text.find("\"id\"") == std::string::npos) {
      EXPECT_FALSE(Do(text).ok()) << text;
    }
  }
  ExpectSamePoints();
}

TEST_F(PlainWriteTest, AFieldThatIsNamedTwiceIsLeftToTheTree) {
  EXPECT_FALSE(WritePlain(Write(kPoint, R"(,"report":"flights")")));
  EXPECT_FALSE(WritePlain(Write(R"({"metric":"late","metric":"departures","time":0,"value":1})")));
}

/// A request with points of all kinds, most of which can be written.
std::string RandomRequest(Random& random) {
  const auto pick = [&](const std::vector<std::string>& choices) {
    return choices[random.Below(choices.size())];
  };
  std::string points;
  for (uint64_t i = random.Below(5); i > 0; --i) {
    const std::string metric = pick({"departures", "late", "delay", "planes"});
    std::string value = R"("value":)" + pick({"1", "-5", "2.5", "\"9007199254740993\"", "0", "1e3"});
    if (metric == "delay") value = R"("values":)" + pick({"[1]", "[4,-2,11.5]", "[0]"});
    if (metric == "planes") value = R"("values":)" + pick({"[]", R"(["a"])", R"(["a","b\u0063"])"});
    std::vector<std::string> fields = {
        R"("metric":")" + metric + "\"",
        R"("time":)" + pick({"0", "3600000", "\"2013-01-01\"", "\"2013-01-02T05:00:00Z\""}),
        R"("segments":{"carrier":")" + pick({"UA", "AA", "\\u0055A"}) + R"(","origin":")" +
            pick({"EWR", "Zürich"}) + "\"}",
        value};
    std::swap(fields[0], fields[random.Below(4)]);
    points += (points.empty() ? "{" : ",{") +
              fmt::format("{}", fmt::join(fields, random.OneIn(4) ? " ,\n" : ",")) + "}";
  }
  return Write(points, random.OneIn(2) ? R"(,"add":true)" : "");
}

TEST_F(PlainWriteTest, NothingIsReadDifferently) {
  Random random(testing::Seed("plain writes"));
  const uint64_t rounds = testing::Rounds("KV_TEST_OPERATIONS", 2'000);
  uint64_t done = 0;
  for (uint64_t i = 0; i < rounds && !HasFailure(); ++i) {
    std::string text = RandomRequest(random);
    if (random.OneIn(2)) {
      const size_t at = random.Below(text.size());
      text[at] = R"({}[],:"0123456789-.eatz \)"[random.Below(25)];
    }
    done += WriteBothWays(text) ? 1 : 0;
  }
  EXPECT_GT(done, rounds / 10) << "otherwise this has tested nothing";
  ExpectSamePoints();
}

}  // namespace
}  // namespace kvstore::reports
