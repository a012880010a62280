#include <gtest/gtest.h>

#include <memory>

#include "kvstore_api/open.h"
#include "reports/maintenance.h"
#include "tests/reports/report_history.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::reports {
namespace {

TEST(EmbeddedReports, EveryAnswerIsTheModels) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto store, Open({.data = dir / "store"}));
  const uint64_t from_rollups =
      testing::RunReportHistory(*store, {.seed = testing::Seed("embedded report history"),
                                         .steps = testing::Rounds("KV_TEST_OPERATIONS", 1'000),
                                         .expires = true});
  EXPECT_GT(from_rollups, 0u);
}

TEST(EmbeddedReports, WithMaintenanceMeanwhileEveryAnswerIsTheModels) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto store, Open({.data = dir / "store"}));
  const Maintenance maintenance(*store, {.interval_ms = 1, .share = 100, .min_chunks = 2, .quiet_ms = 0});
  testing::RunReportHistory(*store, {.seed = testing::Seed("maintained embedded report history"),
                                     .steps = testing::Rounds("KV_TEST_OPERATIONS", 500)});
  EXPECT_OK(maintenance.figures().last_error);
}

}  // namespace
}  // namespace kvstore::reports
