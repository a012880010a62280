#include "migration/throttle.h"

#include <gtest/gtest.h>

#include "tests/migration/fake_time.h"

namespace kvstore::migration {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

bool Never() { return false; }
bool AtOnce() { return true; }

/// A throttle whose waits take no time.
class Paced {
 public:
  explicit Paced(const Limits& limits) : throttle_(limits, time_.ForThrottle()) {}
  Throttle* operator->() { return &throttle_; }
  /// Returns how long a thread waits that has copied this much in the time `took`.
  milliseconds Wait(size_t units, size_t bytes, milliseconds took) {
    const milliseconds before = time_.Slept();
    throttle_.Wait(units, bytes, took, Never);
    return time_.Slept() - before;
  }
  milliseconds slept() const { return time_.Slept(); }

 private:
  testing::FakeTime time_;
  Throttle throttle_;
};

TEST(Throttle, SlowReadsSlowItDownUntilTheyAreQuickAgain) {
  Paced throttle({.share = 50, .max_read_us = 100});
  throttle->Observe(microseconds(90));
  EXPECT_EQ(throttle.Wait(1, 1, milliseconds(10)), milliseconds(10));
  throttle->Observe(microseconds(110));
  EXPECT_EQ(throttle.Wait(1, 1, milliseconds(10)), milliseconds(30)) << "a quarter of the time";
  throttle->Observe(microseconds(110));
  EXPECT_EQ(throttle.Wait(1, 1, milliseconds(10)), milliseconds(70));
  for (int i = 0; i < 100; ++i) throttle->Observe(microseconds(10));
  EXPECT_EQ(throttle.Wait(1, 1, milliseconds(10)), milliseconds(10));
  Paced blind({.share = 100});
  blind->Observe(milliseconds(1000));
  EXPECT_EQ(blind.Wait(1, 1, milliseconds(10)), milliseconds(0));
}

TEST(Throttle, KeepsToEachLimit) {
  EXPECT_EQ(Paced({.share = 100}).Wait(1000, 1000, milliseconds(10)), milliseconds(0));
  EXPECT_EQ(Paced({.share = 50}).Wait(1, 1, milliseconds(10)), milliseconds(10)) << "as long again";
  EXPECT_EQ(Paced({.share = 1}).Wait(1, 1, milliseconds(100)), milliseconds(9'900));
  EXPECT_EQ(Paced({.units_per_s = 1000, .share = 100}).Wait(100, 1, milliseconds(0)), milliseconds(100));
  Paced bytes({.bytes_per_s = 1000, .share = 100});
  EXPECT_EQ(bytes.Wait(1, 100, milliseconds(0)), milliseconds(100));
  bytes->Set({.share = 100});
  EXPECT_EQ(bytes.Wait(1, 100, milliseconds(0)), milliseconds(0));
}

TEST(Throttle, WhatAllThreadsCopiedIsDueTogether) {
  Paced throttle({.units_per_s = 1000, .share = 100});
  for (int i = 0; i < 9; ++i) throttle->Wait(1'000, 1, milliseconds(0), AtOnce);
  EXPECT_EQ(throttle.slept(), milliseconds(0));
  EXPECT_EQ(throttle.Wait(1'000, 1, milliseconds(0)), milliseconds(10'000));
}

TEST(Throttle, AWaitEndsWithNewLimitsAndWithAStop) {
  // Each of these waits would last for a day.
  Paced throttle({.units_per_s = 1, .share = 100});
  throttle->Wait(86'400, 1, milliseconds(0), AtOnce);
  EXPECT_EQ(throttle.slept(), milliseconds(0));
  int asked = 0;
  throttle->Wait(86'400, 1, milliseconds(0), [&] {
    if (++asked == 2) throttle->Set({.share = 100});
    return false;
  });
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(throttle.slept(), milliseconds(200)) << "it looks every tenth of a second";
}

}  // namespace
}  // namespace kvstore::migration
