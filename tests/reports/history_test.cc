#include <gtest/gtest.h>

#include "base/clock.h"
#include "reports/maintenance.h"
#include "tests/reports/memory_store.h"
#include "tests/reports/report_history.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::MemoryStore;
using kvstore::testing::Random;

TEST(ReportHistory, EveryAnswerIsTheModels) {
  Random random(testing::Seed("report history"));
  uint64_t from_rollups = 0;
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 20); i > 0 && !HasFailure(); --i) {
    MemoryStore store;
    // Rows in pieces, and rows as a whole.
    store.page_columns = random.OneIn(2) ? 3 : 1'000;
    Random days(random.Next());
    from_rollups += testing::RunReportHistory(
        store, {.seed = random.Next(),
                .steps = 300,
                .expires = random.OneIn(2),
                .loaders_apart = random.OneIn(2),
                .before_step = [&](uint64_t) { store.AdvanceClock(days.Below(86'400'000)); }});
  }
  EXPECT_GT(from_rollups, 0u) << "otherwise this has tested nothing of them";
}

TEST(ReportHistory, WithWritesThatFailEveryAnswerIsTheModels) {
  Random random(testing::Seed("faulty report history"));
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 20); i > 0 && !HasFailure(); --i) {
    MemoryStore store;
    store.page_columns = random.OneIn(2) ? 3 : 1'000;
    Random faults(random.Next());
    uint64_t writes = 0;
    store.before_write = [&](std::string_view) {
      // The first ones create the report.
      const bool fails = ++writes > 10 && faults.OneIn(100);
      return fails ? absl::UnavailableError("the host does not answer") : absl::OkStatus();
    };
    testing::RunReportHistory(store, {.seed = random.Next(),
                                      .steps = 300,
                                      .faulty = true,
                                      .expires = random.OneIn(2),
                                      .loaders_apart = random.OneIn(2)});
  }
}

/// Two processes maintain the dataset as fast as they can, while it is written and asked.
TEST(ReportHistory, WithMaintenanceMeanwhileEveryAnswerIsTheModels) {
  Random random(testing::Seed("maintained report history"));
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 5); i > 0 && !HasFailure(); --i) {
    MemoryStore store;
    store.page_columns = random.OneIn(2) ? 3 : 1'000;
    // By timestamps of 1970 no row would have changed since the round before.
    store.AdvanceClock(WallClockMs());
    const MaintenanceOptions options{.interval_ms = 1, .share = 100, .min_chunks = 2, .quiet_ms = 0};
    const Maintenance one(store, options);
    const Maintenance other(store, options);
    testing::RunReportHistory(store, {.seed = random.Next(), .steps = 300, .loaders_apart = random.OneIn(2)});
    EXPECT_OK(one.figures().last_error);
    EXPECT_OK(other.figures().last_error);
  }
}

}  // namespace
}  // namespace kvstore::reports
