#include "cli/reports/json_points.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "tests/cli/reports/load_fixture.h"

namespace kvstore::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonPoints : public LoadFixture {
 protected:
  cli::LoadCounts Load(const std::string& text) { return LoadFixture::Load(&cli::LoadJsonLines, text); }
};

TEST_F(JsonPoints, ALineIsOnePoint) {
  const auto counts =
      Load(R"({"metric":"clicks","time":1000,"segments":{"country":"US","app":"web"},"value":3}
{"metric":"cost","time":"1970-01-01T00:00:02Z","segments":{"country":"US"},"value":1.5}
{"metric":"users","time":0,"segments":{"country":"US"},"values":["ann","bob"]}
{"metric":"delay","time":0,"segments":{"country":"US"},"values":[4,-2,11]})");
  EXPECT_EQ(counts.lines, 4u);
  EXPECT_EQ(counts.points, 4u);
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 1000 US,web=3", "cost 2000 US,none=1.5",
                                             "users 0 US,none", "delay 0 US,none"));
}

TEST_F(JsonPoints, OrHasAPointOfEachMetricThatItNames) {
  Load(R"({"time":"1970-01-01","country":"US","clicks":3,"cost":null,"users":"ann","delay":[1,2.5]}
{"time":1000,"country":"CA","app":"ios","clicks":"9007199254740993"})");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=3", "delay 0 US,none", "users 0 US,none",
                                             "clicks 1000 CA,ios=9007199254740993"));
}

TEST_F(JsonPoints, ALineWithAMistakeIsRejectedAsAWhole) {
  const auto counts = Load(R"(oops

[1]
{"country":"US","clicks":3}
{"time":-1,"country":"US","clicks":3}
{"time":0,"country":"US","clicks":3,"shoes":4}
{"time":0,"country":"US","clicks":3})");
  EXPECT_EQ(counts.lines, 7u);
  EXPECT_EQ(counts.blank, 1u);
  EXPECT_EQ(counts.rejected, 5u);
  EXPECT_THAT(rejects_, ElementsAre(HasSubstr("1: not JSON"), "3: the line must be an object",
                                    "4: time: missing", HasSubstr("5: time: must be RFC 3339"),
                                    "6: report 'site' has no segment key and no metric 'shoes'"));
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=3"));
}

TEST_F(JsonPoints, MistakesOfOnePointAreNamed) {
  Load(R"({"metric":"clicks","time":0,"segments":{"country":"US"},"value":1,"values":[1]}
{"metric":"clicks","time":0,"segments":{"contry":"US"},"value":1}
{"metric":"clicks","time":0,"segments":{"country":1},"value":1}
{"metric":"clicks","time":0,"segments":{"country":"US"},"value":1,"more":2}
{"metric":"clicks","time":0,"segments":{"country":"US"},"value":"x"})");
  EXPECT_THAT(rejects_, ElementsAre("1: value: give either 'value' or 'values'",
                                    "2: segments: report 'site' has no segment key 'contry'",
                                    "3: country: a segment value must be a string", "4: more: unknown field",
                                    HasSubstr("5: clicks: must be a number, or an integer as a string")));
  EXPECT_TRUE(reports_.points().empty());
}

TEST_F(JsonPoints, ValuesMustFitTheKind) {
  Load(R"({"time":0,"country":"US","users":3}
{"time":0,"country":"US","delay":"3"}
{"time":0,"country":"US","delay":[]}
{"time":0,"country":"US","clicks":[1]}
{"time":0,"country":"US","clicks":true})");
  EXPECT_EQ(rejects_.size(), 5u);
  EXPECT_TRUE(reports_.points().empty());
}

TEST_F(JsonPoints, IntegersThatDoNotFitAreRejected) {
  Load(R"({"time":0,"country":"US","clicks":9223372036854775807}
{"time":0,"country":"US","clicks":9223372036854775808}
{"time":0,"country":"US","clicks":18446744073709551616}
{"metric":"clicks","time":0,"segments":{"country":"US"},"value":-9223372036854775809}
{"time":253402300800000,"country":"US","clicks":1})");
  EXPECT_THAT(
      rejects_,
      ElementsAre(HasSubstr("2: clicks: must be a number"), HasSubstr("3: clicks: an integer beyond 64 bits"),
                  HasSubstr("4: value: an integer beyond 64 bits"), HasSubstr("5: time: must be RFC 3339")));
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=9223372036854775807"));
}

TEST_F(JsonPoints, EachNameIsAskedForOnce) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) {
    text += R"({"time":)" + std::to_string(i * 1000) + R"(,"country":"US","clicks":1)" +
            (i == 20'000 ? R"(,"cost":2)" : "") + (i % 1000 == 0 ? R"(,"shoes":1)" : "") + "}\n";
  }
  const auto counts = Load(text);
  EXPECT_EQ(counts.points, 40'000u - 40u);
  std::multiset<std::string> names;
  for (const auto& call : reports_.asked()) names.insert(call.begin(), call.end());
  EXPECT_EQ(names, (std::multiset<std::string>{"clicks", "cost", "shoes"}));
}

TEST_F(JsonPoints, AMarkAndWindowsLinesAreNoMistake) {
  Load(
      "\xEF\xBB\xBF{\"time\":0,\"country\":\"US\",\"clicks\":1}\r\n\r\n{\"time\":0,\"country\":\"CA\","
      "\"clicks\":2}\r\n");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=1", "clicks 0 CA,none=2"));
  EXPECT_TRUE(rejects_.empty());
}

TEST_F(JsonPoints, FieldsCanBeIgnored) {
  options_.ignored = {"shoes"};
  Load(R"({"time":0,"country":"US","clicks":3,"shoes":{"any":"thing"}})");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=3"));
}

}  // namespace
}  // namespace kvstore::testing
