#include "kvstore_api/call_scope.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::FailsWith;

TEST(CallScope, WithoutOneThereAreNoLimits) { EXPECT_OK(CheckCall()); }

TEST(CallScope, ADeadlineThatHasPassedEndsCalls) {
  {
    const CallScope scope(seconds(-1));
    EXPECT_THAT(CheckCall(), FailsWith(absl::StatusCode::kDeadlineExceeded, "deadline"));
  }
  EXPECT_OK(CheckCall());
}

TEST(CallScope, AnInnerScopeCanOnlyBeNarrower) {
  const CallScope outer(hours(1));
  const auto deadline = *CallScope::Current().deadline;
  {
    const CallScope inner(hours(2));
    EXPECT_EQ(*CallScope::Current().deadline, deadline);
  }
  const CallScope inner(seconds(1));
  EXPECT_LT(*CallScope::Current().deadline, deadline);
}

TEST(CallScope, CancellationIsSeenAndHandedOn) {
  std::atomic<bool> cancelled{false};
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_OK(CheckCall());
  const CallLimits limits = CallScope::Current();
  std::thread([&] {
    EXPECT_OK(CheckCall());
    cancelled = true;
    EXPECT_OK(CheckCall()) << "a scope is of its thread";
    const CallScope mine(limits);
    EXPECT_THAT(CheckCall(), FailsWith(absl::StatusCode::kCancelled, ""));
  }).join();
  EXPECT_THAT(CheckCall(), FailsWith(absl::StatusCode::kCancelled, ""));
}

}  // namespace
}  // namespace kvstore
