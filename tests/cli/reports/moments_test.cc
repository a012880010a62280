#include "cli/reports/moments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/report_types.h"
#include "reports/steps.h"

namespace kvstore::cli {
namespace {

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kDay = 24 * kHour;
/// 2013-03-31T10:30:00Z, 12:30 in Berlin, where clocks were put forward at two in the night before.
constexpr int64_t kNow = 1'364'725'800'000;

absl::TimeZone Zone(const char* name) { return *reports::LoadZone(name); }

int64_t Moment(const char* text, const char* zone = "UTC") {
  const auto moment = ParseMoment(text, kNow, Zone(zone));
  EXPECT_TRUE(moment.ok()) << moment.status();
  return moment.value_or(-1);
}

TEST(Moments, AreDatesTimesAndMilliseconds) {
  EXPECT_EQ(Moment("2013-01-01"), 1'356'998'400'000);
  EXPECT_EQ(Moment("2013-01-01", "Europe/Berlin"), 1'356'998'400'000 - kHour);
  EXPECT_EQ(Moment("2013-01-01T05:00:00Z", "Europe/Berlin"), 1'356'998'400'000 + 5 * kHour);
  EXPECT_EQ(Moment("2013-01-01T05:00:00.250+02:00"), 1'356'998'400'250 + 3 * kHour);
  EXPECT_EQ(Moment("1356998400000"), 1'356'998'400'000);
  EXPECT_EQ(Moment("0"), 0);
  EXPECT_EQ(Moment("253402300800000"), reports::kMaxTimeMs + 1);
}

TEST(Moments, AreRelativeToNow) {
  EXPECT_EQ(Moment("now"), kNow);
  EXPECT_EQ(Moment("-36h"), kNow - 36 * kHour);
  EXPECT_EQ(Moment("+15m"), kNow + kHour / 4);
  EXPECT_EQ(Moment("-7d"), kNow - 7 * kDay);
  EXPECT_EQ(Moment("-1mo"), kNow - 28 * kDay) << "31 February is 3 March";
}

TEST(Moments, DaysAreThoseOfTheZone) {
  EXPECT_EQ(Moment("today"), kNow - 10 * kHour - kHour / 2);
  EXPECT_EQ(Moment("yesterday"), Moment("today") - kDay);
  // Midnight was at 23:00 UTC; this day has 23 hours.
  EXPECT_EQ(Moment("today", "Europe/Berlin"), Moment("today") - kHour);
  EXPECT_EQ(Moment("yesterday", "Europe/Berlin"), Moment("today", "Europe/Berlin") - kDay);
  // 12:30 of the day before was 23 hours ago.
  EXPECT_EQ(Moment("-1d", "Europe/Berlin"), kNow - 23 * kHour);
  EXPECT_EQ(Moment("-24h", "Europe/Berlin"), kNow - kDay);
}

TEST(Moments, AnythingElseIsRefusedWithWhatThereIs) {
  for (const char* bad :
       {"", "soon", "-", "-7", "7d", "-7x", "-1.5h", "2013-1-1", "2013-02-30", "2013-01-01T05:00:00",
        "99999999999999999999", "253402300800001", "1969-12-31", "-100y", "Now", " now"}) {
    const auto moment = ParseMoment(bad, kNow, absl::UTCTimeZone());
    ASSERT_FALSE(moment.ok()) << bad;
    EXPECT_NE(moment.status().message().find("'" + std::string(bad) + "' is not a time from 1970 to 9999"),
              std::string::npos)
        << moment.status();
  }
}

TEST(Moments, AreWrittenWithTheirOffset) {
  EXPECT_EQ(Rfc3339(1'356'998'400'000, absl::UTCTimeZone()), "2013-01-01T00:00:00Z");
  EXPECT_EQ(Rfc3339(1'356'998'400'250, absl::UTCTimeZone()), "2013-01-01T00:00:00.25Z");
  EXPECT_EQ(Rfc3339(1'356'998'400'000, Zone("America/New_York")), "2012-12-31T19:00:00-05:00");
}

TEST(Moments, ForPeopleTheyAreNoFinerThanNeeded) {
  const std::vector<int64_t> days = {0, kDay};
  EXPECT_EQ(MomentFormat(days, absl::UTCTimeZone())(kDay), "1970-01-02");
  const std::vector<int64_t> hours = {0, kHour};
  EXPECT_EQ(MomentFormat(hours, absl::UTCTimeZone())(0), "1970-01-01 00:00");
  const std::vector<int64_t> seconds = {0, 1'000};
  EXPECT_EQ(MomentFormat(seconds, absl::UTCTimeZone())(1'000), "1970-01-01 00:00:01");
  const std::vector<int64_t> parts = {0, 1'250};
  EXPECT_EQ(MomentFormat(parts, absl::UTCTimeZone())(1'250), "1970-01-01 00:00:01.25");
}

TEST(Moments, AnHourThatComesTwiceIsToldApart) {
  // 2013-10-27, 02:00 in Berlin, twice.
  const int64_t first = 1'382'832'000'000;
  const std::vector<int64_t> hours = {first, first + kHour};
  const MomentFormat format(hours, Zone("Europe/Berlin"));
  EXPECT_EQ(format(first), "2013-10-27 02:00 +02:00");
  EXPECT_EQ(format(first + kHour), "2013-10-27 02:00 +01:00");
}

TEST(PointTimes, ReadWhatFilesHave) {
  PointTimes times(Zone("Europe/Berlin"));
  EXPECT_EQ(*times.Read("2013-01-01T00:00:00Z"), 1'356'998'400'000);
  EXPECT_EQ(*times.Read("2013-01-01T00:00:00Z"), 1'356'998'400'000) << "again, from memory";
  EXPECT_EQ(*times.Read("2013-01-01"), 1'356'998'400'000 - kHour);
  EXPECT_EQ(*times.Read("1000"), 1'000);
  EXPECT_EQ(*times.Read("2013-01-01T00:00:00.5Z"), 1'356'998'400'500);
  EXPECT_FALSE(times.Read("").ok());
  EXPECT_FALSE(times.Read("soon").ok());
  EXPECT_FALSE(times.Read("soon").ok()) << "a mistake is not remembered as a time";
  EXPECT_EQ(*times.Read("2013-01-01T00:00:00.5Z"), 1'356'998'400'500);
}

}  // namespace
}  // namespace kvstore::cli
