#include "cli/reports/csv_points.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/steps.h"
#include "tests/cli/reports/load_fixture.h"

namespace kvstore::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CsvPoints : public LoadFixture {
 protected:
  cli::LoadCounts Load(const std::string& text) { return LoadFixture::Load(&cli::LoadCsv, text); }
  void Refuses(const std::string& text, const std::string& message) {
    const absl::Status status = FailureOf(&cli::LoadCsv, text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(reports_.points(), IsEmpty());
  }
};

TEST_F(CsvPoints, EachCellOfAMetricIsAPoint) {
  const auto counts = Load("time,country,app,clicks,cost\n1000,US,web,3,1.5\n2000,CA,ios,-4,\n");
  EXPECT_EQ(counts.lines, 2u);
  EXPECT_EQ(counts.points, 3u);
  EXPECT_EQ(counts.rejected, 0u);
  EXPECT_THAT(reports_.points(),
              ElementsAre("clicks 1000 US,web=3", "cost 1000 US,web=1.5", "clicks 2000 CA,ios=-4"));
}

TEST_F(CsvPoints, ColumnsMayComeInAnyOrderAndKeysWithADefaultMayBeMissing) {
  Load("clicks,country,time\n3,US,1970-01-01\n");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=3"));
}

TEST_F(CsvPoints, AnEmptyCellOfAKeyIsItsDefaultUnlessItIsQuoted) {
  Load("time,country,app,clicks\n0,US,,1\n0,US,\"\",2\n0,,web,3\n0,\"\",web,4\n");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=1", "clicks 0 US,=2", "clicks 0 ,web=4"));
  EXPECT_THAT(rejects_, ElementsAre(HasSubstr("4: segments: 'country' is missing")));
}

TEST_F(CsvPoints, SetsAndDistributionsHaveSemicolons) {
  const auto counts = Load("time,country,users,delay\n0,US,ann;bob,4;-2;11\n0,CA,ann,1.5\n0,DE,ann,1;x\n");
  EXPECT_EQ(counts.points, 4u);
  EXPECT_THAT(rejects_, ElementsAre(HasSubstr("4: delay: 'x' is not a number")));
}

TEST_F(CsvPoints, ALineWithAMistakeIsRejectedAsAWhole) {
  const auto counts = Load(
      "time,country,clicks,cost\n"
      "0,US,1,2\n"
      "0,US,1\n"
      "0,US,1,2,3\n"
      "0,US,1,x\n"
      "soon,US,1,2\n"
      "500,US,1,2\n"
      "\n"
      "1000,US,5,6\n");
  EXPECT_EQ(counts.lines, 8u);
  EXPECT_EQ(counts.rejected, 5u);
  EXPECT_EQ(counts.blank, 1u);
  EXPECT_THAT(
      rejects_,
      ElementsAre("3: has 3 fields, and the heading has 4", "4: has 5 fields, and the heading has 4",
                  HasSubstr("5: cost: 'x' is not a number"), HasSubstr("6: time: 'soon' is not a time"),
                  HasSubstr("7: time: 500 ms is not a multiple of the report's resolution of 1s")));
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=1", "cost 0 US,none=2",
                                             "clicks 1000 US,none=5", "cost 1000 US,none=6"));
}

TEST_F(CsvPoints, QuotesWindowsLinesAndAMark) {
  Load("\xEF\xBB\xBFtime,\"country\",clicks\r\n0,\"U,S \"\"x\"\"\",1\r\n1000,\"two\nlines\",\"2\"\r\n");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 U,S \"x\",none=1", "clicks 1000 two\nlines,none=2"));
}

TEST_F(CsvPoints, DatesAreMidnightInTheZone) {
  options_.zone = *reports::LoadZone("America/New_York");
  Load("time,country,clicks\n2013-01-01,US,1\n2013-07-01,US,2\n2013-01-01T00:00:00Z,US,3\n");
  EXPECT_THAT(reports_.points(),
              ElementsAre("clicks 1357016400000 US,none=1", "clicks 1372651200000 US,none=2",
                          "clicks 1356998400000 US,none=3"));
}

TEST_F(CsvPoints, AHeadingThatDoesNotFitIsRefused) {
  Refuses("", "heading: the file is empty");
  Refuses("time,country\n", "heading: names no metric");
  Refuses("country,clicks\n", "heading: has no column 'time'");
  Refuses("time,clicks\n", "heading: has no column for segment key 'country', which has no default");
  Refuses("time,country,clicks,clicks\n", "heading: 'clicks' is named twice");
  Refuses("time,country,,clicks\n", "heading: column 3 has no name");
  Refuses("time,country,clicks,shoes\n",
          "heading: report 'site' has no segment key and no metric 'shoes'; add it with kv report alter, or "
          "leave "
          "the column out with --ignore");
  Refuses("time,contry,clicks\n", "'contry' (did you mean country?)");
  Refuses("time,country,\"clicks\n0,US,1\n", "heading: a quote is not closed");
  Refuses("time,country," + std::string(600, 'x') + "\n", "no metric 'xxx");
  options_.report = "sight";
  EXPECT_EQ(FailureOf(&cli::LoadCsv, "time,country,clicks\n").code(), absl::StatusCode::kNotFound);
}

TEST_F(CsvPoints, ColumnsCanBeIgnored) {
  options_.ignored = {"shoes", "cost"};
  Load("time,shoes,country,clicks,cost\n0,x,US,1,also x\n");
  EXPECT_THAT(reports_.points(), ElementsAre("clicks 0 US,none=1"));
}

TEST_F(CsvPoints, ABatchEndsWhereTheNextRecordHasNoRoom) {
  options_.batch_points = 5;
  Load(
      "time,country,clicks,cost\n0,US,1,1\n1000,US,2,2\n2000,US,3,3\n3000,US,x,x\n4000,US,4,\n5000,US,5,5\n");
  const auto written = reports_.written();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].points.size(), 4u) << "a third record would make it six";
  EXPECT_EQ(written[1].points.size(), 5u) << "full";
  EXPECT_EQ(written[0].batch, "") << "no prefix was given";
}

TEST_F(CsvPoints, ARecordThatIsMoreThanABatchIsOneAlone) {
  options_.batch_points = 1;
  Load("time,country,clicks,cost\n0,US,1,1\n1000,US,2,\n");
  const auto written = reports_.written();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].points.size(), 2u);
  EXPECT_EQ(written[1].points.size(), 1u);
}

class BatchIds : public CsvPoints {
 protected:
  void SetUp() override {
    prefix_ = "p";
    options_.batch_points = 2;
    options_.add = true;
  }
  std::vector<std::string> Ids(const std::string& text) {
    const size_t before = reports_.written().size();
    Load(text);
    std::vector<std::string> ids;
    const auto written = reports_.written();
    for (size_t i = before; i < written.size(); ++i) ids.push_back(written[i].batch);
    return ids;
  }
};

constexpr char kFourLines[] = "time,country,clicks\n0,US,1\n1000,US,2\n2000,US,3\n3000,US,4\n";

TEST_F(BatchIds, AreTheSameForTheSameFile) {
  const auto ids = Ids(kFourLines);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_THAT(ids[0], ::testing::StartsWith("p/20/"));
  EXPECT_THAT(ids[1], ::testing::StartsWith("p/37/"));
  EXPECT_EQ(Ids(kFourLines), ids);
}

TEST_F(BatchIds, ABatchWithOtherPointsIsAnotherOne) {
  const auto ids = Ids(kFourLines);
  // One digit in the second batch.
  const auto changed = Ids("time,country,clicks\n0,US,1\n1000,US,2\n2000,US,3\n3000,US,5\n");
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0], ids[0]);
  EXPECT_NE(changed[1], ids[1]);
  // Other columns with the same text.
  const auto other_metric = Ids("time,country,cost\n\n\n0,US,1\n1000,US,2\n2000,US,3\n3000,US,4\n");
  EXPECT_NE(other_metric[0], ids[0]) << "it begins at the same byte";
  // The same text in another time zone.
  options_.zone = *reports::LoadZone("Europe/Berlin");
  EXPECT_NE(Ids(kFourLines)[0], ids[0]);
}

}  // namespace
}  // namespace kvstore::testing
