#include "cli/reports/definitions.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

using reports::Metric;
using reports::MetricKind;
using reports::Rollup;
using reports::SegmentKey;
using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Definitions, SegmentKeysMayHaveADefault) {
  EXPECT_EQ(*ParseSegmentKey("country"), (SegmentKey{"country", std::nullopt}));
  EXPECT_EQ(*ParseSegmentKey("gender=unknown"), (SegmentKey{"gender", "unknown"}));
  EXPECT_EQ(*ParseSegmentKey("gender="), (SegmentKey{"gender", ""}));
  EXPECT_EQ(*ParseSegmentKey("a=b=c"), (SegmentKey{"a", "b=c"}));
  EXPECT_THAT(ParseSegmentKey("=x"), FailsWith(kInvalid, "'=x' has no name: give NAME, or NAME=DEFAULT"));
  EXPECT_FALSE(ParseSegmentKey("").ok());
}

TEST(Definitions, MetricsMayHaveAKind) {
  EXPECT_EQ(*ParseMetric("clicks"), (Metric{0, "clicks", MetricKind::kValue}));
  EXPECT_EQ(*ParseMetric("delay:distribution"), (Metric{0, "delay", MetricKind::kDistribution}));
  EXPECT_EQ(*ParseMetric("users:distinct"), (Metric{0, "users", MetricKind::kDistinct}));
  EXPECT_EQ(*ParseMetric("a:b:value"), (Metric{0, "a:b", MetricKind::kValue}));
  EXPECT_THAT(ParseMetric("delay:distribtion"), FailsWith(kInvalid, "there is no kind 'distribtion'"));
  EXPECT_THAT(ParseMetric("a:b"), FailsWith(kInvalid, "a:b:value"));
  EXPECT_THAT(ParseMetric(":value"), FailsWith(kInvalid, "has no name"));
}

TEST(Definitions, RollupsHaveKeysAndAStep) {
  EXPECT_EQ(*ParseRollup("country,gender@1d"), (Rollup{{"country", "gender"}, 86'400'000}));
  EXPECT_EQ(*ParseRollup("@1h"), (Rollup{{}, 3'600'000}));
  EXPECT_EQ(*ParseRollup("a@b@15m"), (Rollup{{"a@b"}, 900'000}));
  EXPECT_THAT(ParseRollup("country"), FailsWith(kInvalid, "KEY,KEY@STEP"));
  EXPECT_THAT(ParseRollup("country@soon"), FailsWith(kInvalid, "'soon' is not a stretch of time"));
  EXPECT_THAT(ParseRollup("country@1mo"), FailsWith(kInvalid, "must have a fixed length"));
  EXPECT_THAT(ParseRollup("country,@1d"), FailsWith(kInvalid, "a segment key has no name"));
  EXPECT_THAT(ParseRollup(",country@1d"), FailsWith(kInvalid, "a segment key has no name"));
}

}  // namespace
}  // namespace kvstore::cli
