#include "backends/mysql/driver/breaker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::mysql {
namespace {

using testing::Eventually;
using testing::FailsWith;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
const absl::Status kFailure = absl::UnavailableError("no route");

TEST(Breaker, OpensAfterFailuresInARowOnly) {
  Breaker breaker("db1", {.failures = 3, .min_pause_ms = 60'000, .max_pause_ms = 60'000});
  breaker.Failed(kFailure);
  breaker.Failed(kFailure);
  breaker.Succeeded();
  breaker.Failed(kFailure);
  breaker.Failed(kFailure);
  EXPECT_OK(breaker.Allow());
  breaker.Failed(kFailure);
  EXPECT_THAT(breaker.Allow(), FailsWith(kUnavailable, "no route"));
}

TEST(Breaker, LetsOneTryAfterThePause) {
  Breaker breaker("db1", {.failures = 1, .min_pause_ms = 20, .max_pause_ms = 60'000});
  breaker.Failed(kFailure);
  EXPECT_THAT(breaker.Allow(), FailsWith(kUnavailable, ""));
  ASSERT_TRUE(Eventually([&] { return breaker.Allow().ok(); }));
  // The others are refused until the outcome of that try is known.
  EXPECT_THAT(breaker.Allow(), FailsWith(kUnavailable, ""));
  breaker.Succeeded();
  EXPECT_OK(breaker.Allow());
  EXPECT_OK(breaker.Allow());
}

TEST(Breaker, AFailedTryPausesAgain) {
  Breaker breaker("db1", {.failures = 1, .min_pause_ms = 20, .max_pause_ms = 40});
  breaker.Failed(kFailure);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Eventually([&] { return breaker.Allow().ok(); }));
    breaker.Failed(absl::UnavailableError("still no route"));
    EXPECT_THAT(breaker.Allow(), FailsWith(kUnavailable, "still no route"));
  }
}

TEST(Breaker, SaysTheSameAsLongAsItIsOpen) {
  Breaker breaker("db1", {.failures = 1, .min_pause_ms = 60'000, .max_pause_ms = 60'000});
  breaker.Failed(kFailure);
  const absl::Status first = breaker.Allow();
  const auto begin = CoarseClock::now();
  ASSERT_TRUE(Eventually([&] { return CoarseClock::now() > begin + std::chrono::milliseconds(20); }));
  EXPECT_EQ(breaker.Allow().message(), first.message());
}

TEST(Breaker, ConcurrentCallersGetOneTry) {
  Breaker breaker("db1", {.failures = 1, .min_pause_ms = 0, .max_pause_ms = 60'000});
  breaker.Failed(kFailure);
  std::atomic<int> allowed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      if (breaker.Allow().ok()) ++allowed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 1);
}

}  // namespace
}  // namespace kvstore::mysql
