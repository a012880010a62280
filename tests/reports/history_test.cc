#include <gtest/gtest.h>

#include "tests/reports/memory_store.h"
#include "tests/reports/report_history.h"
#include "tests/support/random.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::MemoryStore;
using kvstore::testing::Random;

TEST(ReportHistory, EveryAnswerIsTheModels) {
  Random random(testing::Seed("report history"));
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 20); i > 0 && !HasFailure(); --i) {
    MemoryStore store;
    // Rows in pieces, and rows as a whole.
    store.page_columns = random.OneIn(2) ? 3 : 1'000;
    testing::RunReportHistory(store, random.Next(), 300, /*faulty=*/false);
  }
}

TEST(ReportHistory, WithWritesThatFailEveryAnswerIsTheModels) {
  Random random(testing::Seed("faulty report history"));
  for (uint64_t i = testing::Rounds("KV_TEST_HISTORIES", 20); i > 0 && !HasFailure(); --i) {
    MemoryStore store;
    // Rows in pieces, and rows as a whole.
    store.page_columns = random.OneIn(2) ? 3 : 1'000;
    Random faults(random.Next());
    uint64_t writes = 0;
    store.before_write = [&](std::string_view) {
      // The first ones create the report.
      const bool fails = ++writes > 10 && faults.OneIn(100);
      return fails ? absl::UnavailableError("the host does not answer") : absl::OkStatus();
    };
    testing::RunReportHistory(store, random.Next(), 300, /*faulty=*/true);
  }
}

}  // namespace
}  // namespace kvstore::reports
