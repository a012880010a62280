#include <gtest/gtest.h>

#include "kvstore_api/open.h"
#include "tests/reports/report_history.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::reports {
namespace {

TEST(EmbeddedReports, EveryAnswerIsTheModels) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto store, Open({.data = dir / "store"}));
  testing::RunReportHistory(*store, testing::Seed("embedded report history"),
                            testing::Rounds("KV_TEST_OPERATIONS", 1'000),
                            /*faulty=*/false);
}

}  // namespace
}  // namespace kvstore::reports
