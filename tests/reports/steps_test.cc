#include "reports/steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/time/civil_time.h"
#include "reports/report_types.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kDay = 24 * kHour;

absl::TimeZone Zone(const std::string& name) {
  auto zone = LoadZone(name);
  EXPECT_OK(zone);
  return zone.value_or(absl::UTCTimeZone());
}

int64_t At(const std::string& text, const absl::TimeZone& zone = absl::UTCTimeZone()) {
  auto time = ParseTimeText(text, zone);
  EXPECT_OK(time);
  return time.value_or(-1);
}

TEST(Step, IsReadFromText) {
  EXPECT_EQ(*ParseStep("500ms"), (Step{Step::Unit::kMilliseconds, 500}));
  EXPECT_EQ(*ParseStep("15m"), (Step{Step::Unit::kMilliseconds, 900'000}));
  EXPECT_EQ(*ParseStep("1d"), (Step{Step::Unit::kDays, 1}));
  EXPECT_EQ(*ParseStep("2w"), (Step{Step::Unit::kWeeks, 2}));
  EXPECT_EQ(*ParseStep("1mo"), (Step{Step::Unit::kMonths, 1}));
  EXPECT_EQ(*ParseStep("1y"), (Step{Step::Unit::kMonths, 12}));
  for (const char* text :
       {"", "d", "0d", "-1d", "1", "1 d", "1.5h", "99999999999999999999d", "1000y", "1D", "1h "}) {
    EXPECT_THAT(ParseStep(text), FailsWith(absl::StatusCode::kInvalidArgument, "not a stretch of time"))
        << text;
  }
  EXPECT_EQ(StepText(3'600'000), "1h");
  EXPECT_EQ(StepText(30 * 86'400'000ull), "30d");
  EXPECT_EQ(StepText(1'500), "1500ms");
}

TEST(Times, AreRfc3339OrDates) {
  EXPECT_EQ(At("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(At("2013-01-01T05:00:00+05:00"), 1'356'998'400'000);
  EXPECT_EQ(At("2013-01-01T00:00:00.250Z"), 1'356'998'400'250);
  EXPECT_EQ(At("2013-01-01"), 1'356'998'400'000);
  EXPECT_EQ(At("2013-01-01", Zone("Europe/Berlin")), 1'356'998'400'000 - kHour);
  for (const char* text : {"", "2013", "2013-13-01", "2013-01-01T00:00:00", "infinite-future", "yesterday",
                           "1969-12-31", "-001-01-01", "99999-01-01T00:00:00Z"}) {
    EXPECT_THAT(ParseTimeText(text, absl::UTCTimeZone()), FailsWith(absl::StatusCode::kInvalidArgument, ""))
        << text;
  }
}

/// A time by the general way alone; nullopt for a text that is none.
std::optional<int64_t> SlowTime(const std::string& text, const absl::TimeZone& zone) {
  absl::CivilDay day;
  absl::Time time;
  std::string error;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  if (text.size() == 10 && absl::ParseCivilTime(text, &day)) {
    time = absl::FromCivil(day, zone);
  } else if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return std::nullopt;
  }
  const int64_t ms = absl::ToUnixMillis(time);
  return ms < 0 || ms > kMaxTimeMs ? std::nullopt : std::optional(ms);
}

TEST(Times, TheFastWaySaysWhatTheSlowWaySays) {
  testing::Random random(testing::Seed("times of texts"));
  const char* zones[] = {"UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kolkata"};
  const auto expect_same = [](const std::string& text, const absl::TimeZone& zone) {
    const auto time = ParseTimeText(text, zone);
    EXPECT_EQ(time.ok() ? std::optional(*time) : std::nullopt, SlowTime(text, zone))
        << text << ", " << zone.name();
  };
  for (int i = 0; i < 20'000 && !HasFailure(); ++i) {
    const absl::TimeZone zone = Zone(zones[random.Below(5)]);
    const auto second = static_cast<int64_t>(random.Below(static_cast<uint64_t>(kMaxTimeMs) / 1000));
    const char* format = random.OneIn(2) ? "%Y-%m-%d" : "%Y-%m-%d%ET%H:%M:%SZ";
    std::string text = absl::FormatTime(format, absl::FromUnixSeconds(second), absl::UTCTimeZone());
    expect_same(text, zone);
    text[random.Below(text.size())] = "0123456789TZ:-. "[random.Below(16)];
    expect_same(text, zone);
  }
  for (const char* text : {"1970-01-01", "2011-12-30", "2012-02-29", "2013-02-29", "2013-04-31", "9999-12-31",
                           "2013-01-01T24:00:00Z", "2013-01-01T00:00:60Z", "2013-01-01T23:59:60Z",
                           "2013-01-01T00:60:00Z", "1969-12-31T23:59:59Z", "0000-00-00", "2013-00-10"}) {
    for (const char* zone : zones) expect_same(text, Zone(zone));
  }
}

TEST(Times, ZonesOfThisMachineAlone) {
  for (const char* name : {"", "Mars/Phobos", "../../etc/passwd", "/etc/passwd", ":UTC"}) {
    EXPECT_THAT(LoadZone(name), FailsWith(absl::StatusCode::kInvalidArgument, "timezone")) << name;
  }
}

TEST(StepGrid, DaysOfAZoneHave23To25Hours) {
  const absl::TimeZone zone = Zone("America/New_York");
  ASSERT_OK_AND_ASSIGN(
      const StepGrid spring,
      StepGrid::Make({Step::Unit::kDays, 1}, zone, At("2013-03-09", zone), At("2013-03-12", zone), 100));
  ASSERT_EQ(spring.size(), 3u);
  EXPECT_EQ(spring.start(1) - spring.start(0), 24 * kHour);
  EXPECT_EQ(spring.start(2) - spring.start(1), 23 * kHour);
  ASSERT_OK_AND_ASSIGN(
      const StepGrid autumn,
      StepGrid::Make({Step::Unit::kDays, 1}, zone, At("2013-11-03", zone), At("2013-11-05", zone), 100));
  EXPECT_EQ(autumn.start(1) - autumn.start(0), 25 * kHour);
}

TEST(StepGrid, WeeksStartOnMondaysAndMonthsOnTheFirst) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  ASSERT_OK_AND_ASSIGN(const StepGrid weeks,
                       StepGrid::Make({Step::Unit::kWeeks, 1}, utc, At("2013-01-03"), At("2013-01-15"), 100));
  ASSERT_EQ(weeks.size(), 3u);
  EXPECT_EQ(weeks.start(0), At("2012-12-31"));
  EXPECT_EQ(weeks.start(1), At("2013-01-07"));
  ASSERT_OK_AND_ASSIGN(const StepGrid months, StepGrid::Make({Step::Unit::kMonths, 1}, utc, At("2013-01-31"),
                                                             At("2013-03-02"), 100));
  ASSERT_EQ(months.size(), 3u);
  EXPECT_EQ(months.start(0), At("2013-01-01"));
  EXPECT_EQ(months.start(2), At("2013-03-01"));
  ASSERT_OK_AND_ASSIGN(const StepGrid quarters, StepGrid::Make({Step::Unit::kMonths, 3}, utc,
                                                               At("2013-02-01"), At("2013-05-01"), 100));
  ASSERT_EQ(quarters.size(), 2u);
  EXPECT_EQ(quarters.start(1), At("2013-04-01"));
}

TEST(StepGrid, HoursFollowAZoneOfHalfHours) {
  const absl::TimeZone zone = Zone("Asia/Kolkata");
  ASSERT_OK_AND_ASSIGN(const StepGrid grid, StepGrid::Make(*ParseStep("1h"), zone, At("2013-01-01T00:10:00Z"),
                                                           At("2013-01-01T02:00:00Z"), 100));
  EXPECT_EQ(grid.start(0), At("2012-12-31T23:30:00Z"));
}

TEST(StepGrid, ADayThatAZoneSkippedIsNoStep) {
  const absl::TimeZone zone = Zone("Pacific/Apia");  // there was no 30 December 2011
  ASSERT_OK_AND_ASSIGN(const StepGrid grid,
                       StepGrid::Make({Step::Unit::kDays, 1}, zone, At("2011-12-28T12:00:00Z"),
                                      At("2012-01-02T12:00:00Z"), 100));
  for (size_t i = 1; i < grid.size(); ++i) EXPECT_EQ(grid.start(i) - grid.start(i - 1), kDay);
}

TEST(StepGrid, HasALimit) {
  EXPECT_THAT(StepGrid::Make(*ParseStep("1ms"), absl::UTCTimeZone(), 0, 253'402'300'800'000, 100'000),
              FailsWith(absl::StatusCode::kResourceExhausted, "100000 steps"));
  EXPECT_THAT(StepGrid::Make(*ParseStep("1d"), absl::UTCTimeZone(), 0, 253'402'300'800'000, 100),
              FailsWith(absl::StatusCode::kResourceExhausted, "100 steps"));
  EXPECT_OK(StepGrid::Make(*ParseStep("1d"), absl::UTCTimeZone(), 0, 100 * kDay, 100));
}

TEST(StepGrid, FindsTheStepOfEachTime) {
  testing::Random random(testing::Seed("step_grid"));
  const char* zones[] = {"UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"};
  const char* steps[] = {"7m", "1h", "6h", "1d", "3d", "1w", "1mo", "1y"};
  for (int round = 0; round < 300; ++round) {
    const absl::TimeZone zone = Zone(zones[random.Below(5)]);
    const auto from = static_cast<int64_t>(random.Below(1'700'000'000'000));
    const int64_t to = from + 1 + static_cast<int64_t>(random.Below(40 * kDay));
    const Step step = *ParseStep(steps[random.Below(8)]);
    ASSERT_OK_AND_ASSIGN(const StepGrid grid, StepGrid::Make(step, zone, from, to, 100'000));
    ASSERT_GT(grid.size(), 0u);
    EXPECT_LE(grid.start(0), from);
    for (size_t i = 1; i < grid.size(); ++i) ASSERT_LT(grid.start(i - 1), grid.start(i));
    EXPECT_LT(grid.start(grid.size() - 1), to);
    for (int i = 0; i < 20; ++i) {
      const int64_t time = from + static_cast<int64_t>(random.Below(static_cast<uint64_t>(to - from)));
      const size_t at = grid.IndexOf(time, random.Below(grid.size()));
      EXPECT_LE(grid.start(at), time);
      if (at + 1 < grid.size()) {
        EXPECT_LT(time, grid.start(at + 1));
      }
    }
  }
}

TEST(Shift, KeepsTheTimeOfDay) {
  const absl::TimeZone zone = Zone("America/New_York");
  const int64_t noon = At("2013-03-12T12:00:00-04:00");
  EXPECT_EQ(Shift(noon, {Step::Unit::kDays, 7}, -1, zone), At("2013-03-05T12:00:00-05:00"));
  EXPECT_EQ(Shift(noon, {Step::Unit::kMonths, 1}, -1, zone), At("2013-02-12T12:00:00-05:00"));
  EXPECT_EQ(Shift(noon, *ParseStep("1h"), 1, zone), noon + kHour);
  EXPECT_EQ(Shift(At("2013-01-31"), {Step::Unit::kMonths, 1}, 1, absl::UTCTimeZone()), At("2013-03-03"));
}

TEST(StepGrid, DividesTimesAmongItsSteps) {
  testing::Random random(testing::Seed("divided times"));
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<int64_t>(1 + random.Below(10));
    const Step step =
        random.OneIn(2) ? Step{Step::Unit::kMilliseconds, count * kHour} : Step{Step::Unit::kDays, count};
    const auto from = static_cast<int64_t>(random.Below(40)) * kHour;
    const int64_t to = from + static_cast<int64_t>(1 + random.Below(400)) * kHour;
    const auto grid = StepGrid::Make(step, absl::UTCTimeZone(), from, to, 1'000);
    ASSERT_OK(grid);
    std::vector<int64_t> times;
    for (int64_t time = 0; time < 500 * kHour; time += static_cast<int64_t>(1 + random.Below(3)) * kHour) {
      times.push_back(time);
    }
    std::vector<StepRun> runs;
    grid->Divide(times, from, to, runs);
    size_t run = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i] < from || times[i] >= to) continue;
      if (runs[run].end == i) ++run;
      ASSERT_LT(run, runs.size());
      EXPECT_LE(runs[run].begin, i);
      EXPECT_LT(i, runs[run].end);
      EXPECT_EQ(runs[run].step, grid->IndexOf(times[i], 0));
      if (i == runs[run].begin && run > 0) {
        EXPECT_LT(runs[run - 1].step, runs[run].step);
      }
    }
    EXPECT_EQ(run + 1, runs.empty() ? 1 : runs.size()) << "no run has times from outside of the span";
  }
}

}  // namespace
}  // namespace kvstore::reports
