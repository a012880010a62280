#include "server/call/quota.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "backend_api/outcome.h"
#include "tests/support/status_matchers.h"

namespace kvstore::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FailsWith;

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

constexpr Rate::Clock::duration kNone{};

TEST(Rate, ASecondsWorthComesAtOnceAndThenWhatIsDue) {
  Rate rate;
  rate.Set(10);
  Rate::Clock::time_point now = Rate::Clock::now();
  for (int second = 0; second < 3; ++second, now += seconds(100)) {
    SCOPED_TRACE(second);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(rate.TryTake(1, now));
    EXPECT_FALSE(rate.TryTake(1, now));
    EXPECT_EQ(rate.Wait(0, now), kNone);
    EXPECT_EQ(rate.Wait(1, now), milliseconds(100));
    EXPECT_FALSE(rate.TryTake(1, now + milliseconds(99)));
    EXPECT_TRUE(rate.TryTake(1, now + milliseconds(100)));
    EXPECT_FALSE(rate.TryTake(1, now + milliseconds(199)));
    EXPECT_TRUE(rate.TryTake(1, now + milliseconds(200)));
  }
}

TEST(Rate, WhatIsLargerThanASecondsWorthWaitsUntilNothingIsOwedAndIsWaitedFor) {
  Rate rate;
  rate.Set(1'000);
  const Rate::Clock::time_point now = Rate::Clock::now();
  EXPECT_TRUE(rate.TryTake(1, now));
  EXPECT_FALSE(rate.TryTake(60'000, now));
  EXPECT_TRUE(rate.TryTake(60'000, now + milliseconds(1)));
  EXPECT_FALSE(rate.TryTake(1, now + seconds(58)));
  EXPECT_TRUE(rate.TryTake(1, now + seconds(60)));
}

TEST(Rate, NoMoreThanADaysWorthIsOwed) {
  Rate rate;
  rate.Set(1);
  const Rate::Clock::time_point now = Rate::Clock::now();
  for (int i = 0; i < 3; ++i) rate.Take(UINT64_MAX, now);
  EXPECT_GT(rate.Wait(1, now), std::chrono::hours(23));
  EXPECT_LE(rate.Wait(1, now), std::chrono::hours(24));
}

TEST(Rate, AnotherLimitBeginsAnewAndTheSameOneDoesNot) {
  Rate rate;
  rate.Set(1);
  const Rate::Clock::time_point now = Rate::Clock::now();
  rate.Take(1'000, now);
  rate.Set(1);
  EXPECT_GT(rate.Wait(1, now), seconds(900));
  rate.Set(1'000'000);
  EXPECT_EQ(rate.Wait(1, now), kNone);
}

TEST(Rate, WithoutALimitAnythingIsTaken) {
  Rate rate;
  const Rate::Clock::time_point now = Rate::Clock::now();
  EXPECT_TRUE(rate.TryTake(UINT64_MAX, now));
  EXPECT_TRUE(rate.TryTake(UINT64_MAX, now));
  EXPECT_EQ(rate.Wait(UINT64_MAX, now), kNone);
}

class QuotaTest : public ::testing::Test {
 protected:
  /// Returns the error of Admit; OK if there is none.
  absl::Status Admit(Quota::Clock::time_point now) {
    const auto refusal = quota_.Admit(10, now);
    return refusal ? quota_.Error(*refusal) : absl::OkStatus();
  }

  const Quota::Clock::time_point now_ = Quota::Clock::now();
  Quota quota_{"caller 'web'"};
};

TEST_F(QuotaTest, ErrorsNameTheLimitAndWhenToTryAgain) {
  EXPECT_FALSE(quota_.is_limited());
  quota_.Set({.calls_per_s = 2, .bytes_per_s = 1'000, .max_calls = 3});
  EXPECT_TRUE(quota_.is_limited());
  EXPECT_OK(Admit(now_));
  EXPECT_FALSE(quota_.Check(now_));
  EXPECT_OK(Admit(now_));
  EXPECT_TRUE(quota_.Check(now_));
  const absl::Status calls = Admit(now_);
  EXPECT_THAT(calls,
              FailsWith(kExhausted, "caller 'web': is at its limit of 2 calls a second; try again in"));
  EXPECT_EQ(RetryAfter(calls), milliseconds(500));
  quota_.Take(5'000, now_);
  EXPECT_FALSE(quota_.MaySend(now_));
  const absl::Status bytes = Admit(now_ + seconds(1));
  EXPECT_THAT(bytes, FailsWith(kExhausted, "at its limit of 1000 bytes a second"));
  EXPECT_GT(RetryAfter(bytes), seconds(3));
  EXPECT_LE(RetryAfter(bytes), seconds(4));
  EXPECT_OK(Admit(now_ + seconds(10)));
  EXPECT_THAT(Admit(now_ + seconds(20)), FailsWith(kExhausted, "at its limit of 3 calls in flight"));
  quota_.Release();
  EXPECT_OK(Admit(now_ + seconds(20)));
  EXPECT_EQ(RetryAfter(absl::ResourceExhaustedError("something else")), std::nullopt);
}

TEST_F(QuotaTest, WhatIsRefusedIsNotCounted) {
  quota_.Set({.calls_per_s = 1, .max_calls = 2});
  EXPECT_OK(Admit(now_));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Admit(now_).ok());
  EXPECT_OK(Admit(now_ + seconds(1)));
}

TEST_F(QuotaTest, LimitsThatAreTakenAwayHoldNoMore) {
  quota_.Set({.calls_per_s = 1});
  EXPECT_OK(Admit(now_));
  EXPECT_TRUE(quota_.Check(now_));
  quota_.Set({});
  EXPECT_FALSE(quota_.is_limited());
  EXPECT_OK(Admit(now_));
}

}  // namespace
}  // namespace kvstore::server
