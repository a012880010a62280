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

TEST(Rate, ASecondsWorthComesAtOnceAndThenWhatIsDue) {
  Rate rate;
  rate.Set(10);
  Rate::Clock::time_point now = Rate::Clock::now();
  for (int second = 0; second < 3; ++second, now += seconds(100)) {
    SCOPED_TRACE(second);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(rate.TryTake(1, now));
    EXPECT_FALSE(rate.TryTake(1, now));
    EXPECT_GT(rate.Wait(now), Rate::Clock::duration::zero());
    EXPECT_LE(rate.Wait(now), milliseconds(1));
    EXPECT_TRUE(rate.TryTake(1, now + milliseconds(50)));
    EXPECT_FALSE(rate.TryTake(1, now + milliseconds(99)));
    EXPECT_TRUE(rate.TryTake(1, now + milliseconds(101)));
  }
}

TEST(Rate, WhatIsLargerThanASecondsWorthIsWaitedForAfterwards) {
  Rate rate;
  rate.Set(1'000);
  const Rate::Clock::time_point now = Rate::Clock::now();
  EXPECT_TRUE(rate.TryTake(60'000, now));
  EXPECT_FALSE(rate.TryTake(1, now + seconds(58)));
  EXPECT_TRUE(rate.TryTake(1, now + seconds(60)));
}

TEST(Rate, WithoutALimitAnythingIsTaken) {
  Rate rate;
  const Rate::Clock::time_point now = Rate::Clock::now();
  EXPECT_TRUE(rate.TryTake(UINT64_MAX, now));
  EXPECT_TRUE(rate.TryTake(UINT64_MAX, now));
  EXPECT_EQ(rate.Wait(now), Rate::Clock::duration::zero());
}

TEST(Quota, ErrorsNameTheLimitAndWhenToTryAgain) {
  const Quota::Clock::time_point now = Quota::Clock::now();
  Quota quota("caller 'web'");
  EXPECT_FALSE(quota.is_limited());
  quota.Set({.calls_per_s = 2, .bytes_per_s = 1'000, .max_calls = 3});
  EXPECT_TRUE(quota.is_limited());
  EXPECT_OK(quota.Admit(10, now));
  EXPECT_TRUE(quota.MayAdmit(now));
  EXPECT_OK(quota.Admit(10, now));
  EXPECT_FALSE(quota.MayAdmit(now));
  const absl::Status calls = quota.Admit(10, now);
  EXPECT_THAT(calls,
              FailsWith(kExhausted, "caller 'web': is at its limit of 2 calls a second; try again in"));
  EXPECT_EQ(RetryAfter(calls), milliseconds(1));
  quota.Take(5'000, now);
  EXPECT_FALSE(quota.MaySend(now));
  const absl::Status bytes = quota.Admit(10, now + seconds(1));
  EXPECT_THAT(bytes, FailsWith(kExhausted, "at its limit of 1000 bytes a second"));
  EXPECT_GT(RetryAfter(bytes), seconds(3));
  EXPECT_LE(RetryAfter(bytes), seconds(4));
  EXPECT_OK(quota.Admit(10, now + seconds(10)));
  EXPECT_THAT(quota.Admit(10, now + seconds(20)), FailsWith(kExhausted, "at its limit of 3 calls in flight"));
  quota.Release();
  EXPECT_OK(quota.Admit(10, now + seconds(20)));
  EXPECT_EQ(RetryAfter(absl::ResourceExhaustedError("something else")), std::nullopt);
}

TEST(Quota, LimitsThatAreTakenAwayHoldNoMore) {
  const Quota::Clock::time_point now = Quota::Clock::now();
  Quota quota("dataset 'events'");
  quota.Set({.calls_per_s = 1});
  EXPECT_OK(quota.Admit(0, now));
  EXPECT_FALSE(quota.MayAdmit(now));
  quota.Set({});
  EXPECT_FALSE(quota.is_limited());
  EXPECT_OK(quota.Admit(0, now));
}

}  // namespace
}  // namespace kvstore::server
