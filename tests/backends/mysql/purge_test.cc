#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "tests/backends/mysql/tables_of_rows.h"
#include "tests/backends/mysql/test_fleet.h"

/// Purges: what takes cells that are not visible any more.
namespace kvstore::testing {
namespace {

TEST(Purge, TakesLongColumnsInSmallSteps) {
  Opened dataset({.name = "events", .max_versions = 2});
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " SELECT 'user', CONCAT('c', seq DIV 2500), 1 + seq MOD 2500, 'v' FROM " +
                    Numbers(0, 9999));
  uint64_t calls = 0;
  ASSERT_OK_AND_ASSIGN(const ReclaimResult result,
                       dataset.backend->Reclaim(dataset.spec, [&](uint64_t done, uint64_t total) {
                         EXPECT_LE(done, total);
                         ++calls;
                         return true;
                       }));
  EXPECT_EQ(result.surplus_cells, 4 * 2498u);
  EXPECT_GE(calls, TestFleet::kShards);
  EXPECT_EQ(ServerOf(row).Run("SELECT COUNT(*), MIN(ts) FROM " + TableOf(row)), "8\t2499\n");
}

TEST(Purge, TakesExpiredCellsBehindAnyNumberThatAreNot) {
  Opened dataset({.name = "events", .max_versions = 0, .ttl_ms = 3'600'000});
  const std::string row = "user";
  const std::string now = std::to_string(WallClockMs());
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " SELECT 'user', 'x', " + now + " - seq, 'v' FROM " +
                    Numbers(1, 3000));
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " SELECT 'user', 'x', seq, 'v' FROM " + Numbers(1, 700));
  ASSERT_OK_AND_ASSIGN(const ReclaimResult result, dataset.backend->Reclaim(dataset.spec, nullptr));
  EXPECT_EQ(result.expired_cells, 700u);
  EXPECT_EQ(result.surplus_cells, 0u);
  EXPECT_EQ(ServerOf(row).Run("SELECT COUNT(*) FROM " + TableOf(row)), "3000\n");
}

TEST(Purge, EndsWhileItWaitsForItsRate) {
  auto options = TestFleet::Options();
  options.purge_cells_per_s = 1;
  Opened dataset({.name = "events", .max_versions = 1}, options);
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) + " SELECT 'user', 'x', seq, 'v' FROM " + Numbers(1, 1000));
  const auto left = [&] { return std::stoi(ServerOf(row).Run("SELECT COUNT(*) FROM " + TableOf(row))); };
  // The rate makes it wait for minutes after the first deletes.
  EXPECT_THAT(dataset.backend->Reclaim(dataset.spec, [&](uint64_t, uint64_t) { return left() == 1000; }),
              FailsWith(absl::StatusCode::kCancelled, "stopped"));
  std::atomic<bool> cancelled = false;
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  const auto cancel = [&](uint64_t, uint64_t) { return cancelled = left() < 500, true; };
  EXPECT_THAT(dataset.backend->Reclaim(dataset.spec, cancel), FailsWith(absl::StatusCode::kCancelled, ""));
}

TEST(Purge, NeverTakesWhatWasPutAfterALimitWasRaised) {
  constexpr uint64_t kHourMs = 3'600'000;
  Opened dataset({.name = "events", .max_versions = 1, .ttl_ms = kHourMs});
  const uint64_t now = WallClockMs();
  const std::string row = "user";
  ServerOf(row).Run("INSERT INTO " + TableOf(row) +
                    " VALUES ('user', 'a', 1, 'expired'), ('user', 'b', 2, 'expired'), " + "('user', 'c', " +
                    std::to_string(now - 2) + ", 'old'), ('user', 'c', " + std::to_string(now - 1) +
                    ", 'new')");
  bool raised = false;
  const auto raise = [&](uint64_t, uint64_t) {
    // The first column was trimmed, and the second one is about to be.
    if (raised || ServerOf(row).Run("SELECT COUNT(*) FROM " + TableOf(row)) != "3\n") return true;
    raised = true;
    DatasetSpec changed = dataset.spec;
    changed.ttl_ms = 48 * kHourMs;
    changed.max_versions = 10;
    EXPECT_OK(dataset.backend->AlterDataset(changed));
    EXPECT_OK(PutCell(*dataset.rows, row, "b", "kept", now - 2 * kHourMs));
    return true;
  };
  EXPECT_OK(dataset.backend->Reclaim(dataset.spec, raise));
  EXPECT_TRUE(raised);
  const auto read = dataset.rows->Get(row, {.versions = 10}, std::nullopt);
  ASSERT_OK(read);
  ASSERT_EQ(read->items.size(), 2u);
  EXPECT_EQ(read->items[0].cells[0].value, "kept");
  EXPECT_EQ(read->items[1].cells.size(), 2u);
}

TEST(Purge, NeverTakesWhatADeleteUncovered) {
  // A column is deleted and put again with an older timestamp while purges run: what is acknowledged is
  // visible.
  Opened dataset({.name = "events", .max_versions = 1});
  RowStore& rows = *dataset.rows;
  std::atomic<bool> stop = false;
  std::thread purger([&] {
    while (!stop) EXPECT_OK(dataset.backend->Reclaim(dataset.spec, nullptr));
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(PutCell(rows, "r", "x", "older", 10));
    ASSERT_OK(PutCell(rows, "r", "x", "newer", 20));
    ASSERT_OK(rows.Delete("r", {.columns = {{"x"}}}));
    ASSERT_OK(PutCell(rows, "r", "x", "again", 5));
    ASSERT_EQ(Read(rows, "r"), "x@5=again");
    ASSERT_OK(rows.Delete("r", {}));
  }
  stop = true;
  purger.join();
}

}  // namespace
}  // namespace kvstore::testing
