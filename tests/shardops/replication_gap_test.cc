#include "shardops/replication_gap.h"

#include <gtest/gtest.h>

#include <chrono>

#include "absl/status/status.h"

/// For how long a wait puts up with a slave that does not replicate, by a clock that the test gives.
namespace kvstore::testing {
namespace {

using shardops::kMaxReplicationGap;
using shardops::ReplicationGap;
using std::chrono::milliseconds;
using std::chrono::seconds;

const absl::Status kBroken = absl::UnavailableError("does not replicate");

TEST(ReplicationGap, EndsTheWaitWhenEveryAnswerWasBadForLongEnough) {
  ReplicationGap gap;
  const ReplicationGap::Time begin{};
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin));
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin + kMaxReplicationGap - milliseconds(1)));
  EXPECT_TRUE(gap.IsTooLong(kBroken, begin + kMaxReplicationGap));
  EXPECT_TRUE(gap.IsTooLong(kBroken, begin + kMaxReplicationGap + seconds(1)));
}

TEST(ReplicationGap, OneGoodAnswerBeginsTheGapAnew) {
  ReplicationGap gap;
  const ReplicationGap::Time begin{};
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin));
  EXPECT_FALSE(gap.IsTooLong(absl::OkStatus(), begin + kMaxReplicationGap - seconds(1)));
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin + kMaxReplicationGap));
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin + 2 * kMaxReplicationGap - milliseconds(1)));
  EXPECT_TRUE(gap.IsTooLong(kBroken, begin + 2 * kMaxReplicationGap));
}

TEST(ReplicationGap, TimeWithoutAnAnswerIsNoGap) {
  ReplicationGap gap;
  const ReplicationGap::Time begin{};
  EXPECT_FALSE(gap.IsTooLong(absl::OkStatus(), begin));
  // The first bad answer comes long after the last good one: the operation was busy with something else.
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin + 3 * kMaxReplicationGap));
  EXPECT_FALSE(gap.IsTooLong(kBroken, begin + 3 * kMaxReplicationGap + seconds(1)));
}

}  // namespace
}  // namespace kvstore::testing
