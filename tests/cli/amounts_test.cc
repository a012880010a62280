#include "cli/amounts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvstore::cli {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kNow = 1'767'270'600'000;  // 2026-01-01T12:30:00Z

TEST(Amounts, DurationsAreMillisecondsOrHaveAUnit) {
  EXPECT_EQ(*ParseDuration("0"), 0u);
  EXPECT_EQ(*ParseDuration("1500"), 1'500u);
  EXPECT_EQ(*ParseDuration("010"), 10u) << "not octal";
  EXPECT_EQ(*ParseDuration("500ms"), 500u);
  EXPECT_EQ(*ParseDuration("10s"), 10'000u);
  EXPECT_EQ(*ParseDuration("5m"), 300'000u);
  EXPECT_EQ(*ParseDuration("1h"), 3'600'000u);
  EXPECT_EQ(*ParseDuration("30d"), 2'592'000'000u);
  EXPECT_EQ(*ParseDuration("2w"), 1'209'600'000u);
  EXPECT_EQ(*ParseDuration("1h30m"), 5'400'000u);
  EXPECT_EQ(*ParseDuration("1w1d1h1m1s1ms"), 694'861'001u);
  EXPECT_EQ(*ParseDuration("18446744073709551615"), kMax);
}

TEST(Amounts, OtherDurationsAreRefusedByName) {
  for (const char* bad :
       {"", "h", "-1", "-1h", "+1", "1.5h", "30m1h", "1h1h", "1h30", "1H", "1 h", "0x10", " 1"}) {
    const auto parsed = ParseDuration(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_NE(parsed.status().message().find("'" + std::string(bad) + "': give"), std::string::npos);
  }
  EXPECT_EQ(ParseDuration("50d", 4'294'967'295).status().message(),
            "'50d' is beyond the limit of 4294967295 ms");
  EXPECT_FALSE(ParseDuration("18446744073709551616").ok());
  EXPECT_FALSE(ParseDuration("213503982335d").ok()) << "only its product is beyond 64 bits";
}

TEST(Amounts, TimesAreMillisecondsOrDatesInUtc) {
  EXPECT_EQ(*ParseTime("0", kNow), 0u);
  EXPECT_EQ(*ParseTime("2026", kNow), 2'026u);
  EXPECT_EQ(*ParseTime("18446744073709551615", kNow), kMax);
  EXPECT_EQ(*ParseTime("1970-01-01", kNow), 0u);
  EXPECT_EQ(*ParseTime("2026-01-01", kNow), 1'767'225'600'000u);
  EXPECT_EQ(*ParseTime("2026-01-01T12:30Z", kNow), 1'767'270'600'000u);
  EXPECT_EQ(*ParseTime("2026-01-01T12:30:00Z", kNow), 1'767'270'600'000u);
  EXPECT_EQ(*ParseTime("2026-01-01T12:30:00.250Z", kNow), 1'767'270'600'250u);
  EXPECT_EQ(*ParseTime("2024-02-29", kNow), 1'709'164'800'000u);
  EXPECT_EQ(*ParseTime("9999-12-31T23:59:59.999Z", kNow), 253'402'300'799'999u);
}

TEST(Amounts, TimesMayBeRelativeToNow) {
  EXPECT_EQ(*ParseTime("now", kNow), kNow);
  EXPECT_EQ(*ParseTime("today", kNow), 1'767'225'600'000u);
  EXPECT_EQ(*ParseTime("yesterday", kNow), 1'767'139'200'000u);
  EXPECT_EQ(*ParseTime("-1h30m", kNow), kNow - 5'400'000);
  EXPECT_EQ(*ParseTime("-1w", kNow), kNow - 604'800'000);
}

TEST(Amounts, OtherTimesAreRefusedWithTheReason) {
  struct Case {
    const char* text;
    const char* why;
  };
  for (const Case& one :
       std::vector<Case>{{"-1", "a time is not negative"},
                         {"18446744073709551616", "beyond the limit of 18446744073709551615"},
                         {"", "not a time"},
                         {"tomorrow", "not a time"},
                         {"-1h30", "what follows the - is no duration"},
                         {"-100000d", "it is before 1970"},
                         {"2026-1-1", "not a time"},
                         {"2026-01-01 12:30:00", "not a time"},
                         {"2026-01-01T", "not a time"},
                         {"2026-01-01T12Z", "not a time"},
                         {"2026-01-01T12:30:00Z1", "not a time"},
                         {"2026-01-01T12:30:00.25Z", "not a time"},
                         {"2026-01-01T12:30:00", "in UTC, by a Z"},
                         {"2026-01-01T12:30:00+02:00", "in UTC, by a Z"},
                         {"2026-02-29", "there is no such day"},
                         {"2026-13-01", "there is no such day"},
                         {"2026-01-01T24:00Z", "there is no such time of a day"},
                         {"2026-01-01T23:60Z", "there is no such time of a day"},
                         {"1969-12-31", "it is before 1970"}}) {
    const auto parsed = ParseTime(one.text, kNow);
    ASSERT_FALSE(parsed.ok()) << one.text;
    EXPECT_NE(parsed.status().message().find(one.why), std::string::npos) << parsed.status();
    EXPECT_NE(parsed.status().message().find("'" + std::string(one.text) + "'"), std::string::npos);
  }
}

TEST(Amounts, WholeNumbersAreDecimal) {
  EXPECT_EQ(*ParseWhole("0"), 0u);
  EXPECT_EQ(*ParseWhole("010"), 10u);
  EXPECT_EQ(*ParseWhole("18446744073709551615"), kMax);
  for (const char* bad : {"", "-1", "+1", "1e3", "0x10", "1 ", "1.0"})
    EXPECT_FALSE(ParseWhole(bad).ok()) << bad;
  EXPECT_EQ(ParseWhole("8", 7).status().message(), "'8' is beyond the limit of 7");
}

}  // namespace
}  // namespace kvstore::cli
