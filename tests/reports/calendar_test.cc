#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "reports/rollup.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/clicks_report.h"
#include "tests/reports/memory_store.h"
#include "tests/reports/report_choices.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Days, weeks and months of zones that change their clocks at odd times and by odd amounts. What a step has
/// is compared with sums by the local date of each point, which know nothing of steps.
namespace kvstore::reports {
namespace {

using kvstore::testing::MemoryStore;
using kvstore::testing::Random;

constexpr int64_t kQuarterMs = 900'000;
constexpr int64_t kDayMs = 86'400'000;

/// A zone, and the date of a change of its clocks.
struct Change {
  const char* zone;
  absl::CivilDay day;
};
const Change kChanges[] = {
    {"UTC", absl::CivilDay(2013, 3, 31)},
    {"Europe/Berlin", absl::CivilDay(2013, 3, 31)},       // from two to three
    {"Europe/Berlin", absl::CivilDay(2013, 10, 27)},      // from three to two
    {"America/New_York", absl::CivilDay(2012, 11, 4)},    //
    {"America/Sao_Paulo", absl::CivilDay(2012, 10, 21)},  // there was no midnight
    {"America/Sao_Paulo", absl::CivilDay(2013, 2, 17)},   // an hour before midnight came twice
    {"America/Havana", absl::CivilDay(2012, 11, 4)},      // midnight came twice
    {"Asia/Beirut", absl::CivilDay(2013, 3, 31)},         // there was no midnight
    {"Australia/Lord_Howe", absl::CivilDay(2013, 4, 7)},  // by half an hour
    {"Pacific/Apia", absl::CivilDay(2011, 12, 31)},       // there was no 30 December
    {"Asia/Kathmandu", absl::CivilDay(1986, 1, 1)},       // from 5:30 to 5:45
    {"Asia/Pyongyang", absl::CivilDay(2015, 8, 15)},      // from 9:00 to 8:30, at midnight
    {"America/Caracas", absl::CivilDay(2007, 12, 9)},     // from -4:00 to -4:30, in the night
};

/// The sums of a query by the local beginning of their steps.
using Sums = std::map<std::string, int64_t>;

/// A report of quarters of an hour, with roll-ups of several steps. Its points are large random numbers, so
/// that no sum is right by chance.
class CalendarTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_.page_columns = 1'000;
    ASSERT_OK_AND_ASSIGN(info_, metadata_.Create(testing::ClicksReport(
                                    {.resolution_ms = kQuarterMs, .period_s = 86'400 * 7, .salts = 2})));
  }

  /// Writes a point for each quarter of an hour of some weeks around a time.
  void Load(Random& random, int64_t middle) {
    points_.clear();
    Batch batch(info_);
    const int64_t first = middle - middle % kQuarterMs - 20 * kDayMs;
    for (int64_t time = first; time < first + 40 * kDayMs; time += kQuarterMs) {
      const auto value = static_cast<int64_t>(random.Below(1'000'000'000));
      const std::string country = "c" + std::to_string(random.Below(3));
      const std::optional<std::string_view> segments[] = {country};
      ASSERT_OK(batch.Add(0, time, segments, Number::Integer(value)));
      points_[time] = value;
    }
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
    ASSERT_OK(metadata_.SetRollups("r", {{.keys = {}, .step_ms = kQuarterMs},
                                         {.keys = {}, .step_ms = 3'600'000},
                                         {.keys = {}, .step_ms = kDayMs}}));
    ASSERT_OK(MakeRollups(metadata_, "r", {.keep_all = true}));
  }

  /// The beginning of the step of days, weeks or months that a time lies in, by its local date.
  static std::string BeginningOf(const std::string& step, int64_t time, const absl::TimeZone& zone) {
    absl::CivilDay day(absl::ToCivilSecond(absl::FromUnixMillis(time), zone));
    if (step == "1w") {
      while (absl::GetWeekday(day) != absl::Weekday::monday) --day;
    }
    if (step == "1mo") day = absl::CivilDay(absl::CivilMonth(day));
    return absl::FormatCivilTime(day);
  }

  void ExpectSumsByDate(const std::string& step, const absl::TimeZone& zone, int64_t from, int64_t to) {
    Sums expected;
    for (auto at = points_.lower_bound(from); at != points_.lower_bound(to); ++at) {
      expected[BeginningOf(step, at->first, zone)] += at->second;
    }
    const Query query{.report = "r",
                      .metrics = {{.name = "clicks"}},
                      .from = from,
                      .to = to,
                      .step = *ParseStep(step),
                      .zone = zone};
    const auto result = testing::AskBothWays(metadata_, query);
    ASSERT_OK(result);
    Sums sums;
    for (const auto& [time, value] : result->series[0].points) {
      sums[BeginningOf(step, time, zone)] += value.integer();
    }
    EXPECT_EQ(sums, expected) << step << " in " << zone.name() << " from " << from << " to " << to;
    EXPECT_EQ(result->series[0].points.size(), expected.size()) << "a step has one place";
  }

  MemoryStore store_;
  Metadata metadata_{store_, "reports"};
  ReportInfo info_;
  std::map<int64_t, int64_t> points_;
};

TEST_F(CalendarTest, StepsHaveThePointsOfTheirLocalDates) {
  Random random(testing::Seed("calendars"));
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.zone);
    ASSERT_OK_AND_ASSIGN(const absl::TimeZone zone, LoadZone(change.zone));
    const int64_t middle = absl::ToUnixMillis(absl::FromCivil(change.day, zone));
    Load(random, middle);
    for (const char* step : {"1d", "1w", "1mo"}) {
      const int64_t first = points_.begin()->first;
      ExpectSumsByDate(step, zone, first, first + 40 * kDayMs);
      for (int i = 0; i < 5; ++i) {
        const int64_t from = first + static_cast<int64_t>(random.Below(20 * kDayMs));
        ExpectSumsByDate(step, zone, from, middle + static_cast<int64_t>(random.Below(15 * kDayMs)));
        // From one midnight to another, as dashboards ask.
        const absl::CivilDay day = change.day - static_cast<int64_t>(random.Below(4));
        ExpectSumsByDate(
            step, zone, absl::ToUnixMillis(absl::FromCivil(day, zone)),
            absl::ToUnixMillis(absl::FromCivil(day + 1 + static_cast<int64_t>(random.Below(5)), zone)));
      }
    }
    if (HasFailure()) return;
    // Another zone has points of its own.
    ASSERT_OK(metadata_.Remove(info_));
    SetUp();
  }
}

/// Steps of several days or months are counted from 1970, whatever the range of the query.
TEST_F(CalendarTest, LongerStepsBeginAtTheSameDatesInEveryQuery) {
  const absl::TimeZone zone = *LoadZone("Europe/Berlin");
  for (const auto& [step, days] : {std::pair{"3d", 3}, std::pair{"2w", 14}}) {
    // A Monday that is a whole number of fortnights, and of three days, from the first one before 1970.
    const absl::CivilDay epoch =
        std::string_view(step) == "2w" ? absl::CivilDay(1969, 12, 29) : absl::CivilDay(1970, 1, 1);
    for (int offset = 0; offset < 60; ++offset) {
      const absl::CivilDay day = absl::CivilDay(2013, 3, 10) + offset;
      const absl::CivilDay begins = day - (day - epoch) % days;
      const int64_t from = absl::ToUnixMillis(absl::FromCivil(day, zone));
      ASSERT_OK_AND_ASSIGN(const StepGrid grid, StepGrid::Make(*ParseStep(step), zone, from, from + 1, 10));
      ASSERT_EQ(grid.size(), 1u);
      EXPECT_EQ(grid.start(0), absl::ToUnixMillis(absl::FromCivil(begins, zone))) << step << " " << offset;
    }
  }
  for (int month = 1; month <= 12; ++month) {
    const int64_t from = absl::ToUnixMillis(absl::FromCivil(absl::CivilDay(2013, month, 15), zone));
    ASSERT_OK_AND_ASSIGN(const StepGrid quarter, StepGrid::Make(*ParseStep("3mo"), zone, from, from + 1, 10));
    EXPECT_EQ(quarter.start(0),
              absl::ToUnixMillis(absl::FromCivil(absl::CivilDay(2013, (month - 1) / 3 * 3 + 1, 1), zone)));
    ASSERT_OK_AND_ASSIGN(const StepGrid year, StepGrid::Make(*ParseStep("1y"), zone, from, from + 1, 10));
    EXPECT_EQ(year.start(0), absl::ToUnixMillis(absl::FromCivil(absl::CivilDay(2013, 1, 1), zone)));
  }
}

}  // namespace
}  // namespace kvstore::reports
