#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "reports/maintenance.h"
#include "tests/migration/migration_fixture.h"
#include "tests/reports/report_history.h"
#include "tests/support/random.h"

/// Reports on the shards of real MySQL servers, and while their dataset migrates between them and the
/// embedded store.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

class ReportsOnShards : public MigrationTest {};

TEST_F(ReportsOnShards, EveryAnswerIsTheModels) {
  Create({.name = "reports", .backend = "mysql"});
  const uint64_t from_rollups =
      RunReportHistory(store_->router(), {.seed = Seed("report history on shards"),
                                          .steps = Rounds("KV_TEST_OPERATIONS", 300),
                                          .expires = true});
  EXPECT_GT(from_rollups, 0u);
}

class MigratingReports : public MigrationTest {
 protected:
  /// A history during which the dataset migrates to MySQL, back, to MySQL again, and stays there.
  void RunHistory(const std::string& name) {
    const uint64_t steps = Rounds("KV_TEST_OPERATIONS", 500);
    const uint64_t part = steps / 10;
    const std::map<uint64_t, std::function<void()>> events = {
        {1 * part,
         [&] {
           store_->Do("create", "reports", To("mysql"));
           store_->Do("start", "reports");
         }},
        {2 * part,
         [&] {
           store_->Await("reports", "ready");
           // The cutover happens in the middle of what comes.
           store_->Do("cutover", "reports");
         }},
        {4 * part,
         [&] {
           store_->Await("reports", "reversible");
           EXPECT_EQ(store_->BackendOf("reports"), "mysql");
           store_->Do("reverse", "reports");
         }},
        {5 * part,
         [&] {
           store_->Await("reports", "ready");
           EXPECT_EQ(store_->BackendOf("reports"), "rocksdb");
           store_->Do("cutover", "reports");
         }},
        {6 * part,
         [&] {
           store_->Await("reports", "reversible");
           EXPECT_EQ(store_->BackendOf("reports"), "mysql");
           store_->Do("reverse", "reports");
         }},
        {7 * part,
         [&] {
           store_->Await("reports", "ready");
           EXPECT_EQ(store_->BackendOf("reports"), "rocksdb");
           store_->Do("cutover", "reports");
         }},
        {8 * part,
         [&] {
           store_->Await("reports", "reversible");
           store_->Do("finish", "reports");
         }},
        {9 * part, [&] {
           store_->Await("reports", "finished");
           EXPECT_EQ(store_->BackendOf("reports"), "mysql");
         }}};
    const uint64_t from_rollups = RunReportHistory(
        store_->router(), {.seed = Seed(name), .steps = steps, .before_step = [&](uint64_t step) {
                             if (const auto event = events.find(step); event != events.end()) event->second();
                           }});
    EXPECT_GT(from_rollups, 0u);
  }
};

TEST_F(MigratingReports, EveryAnswerIsTheModels) { RunHistory("migrating report history"); }

/// The maintenance waits for the cutovers, as everybody does, and loses nothing by them.
TEST_F(MigratingReports, WithMaintenanceMeanwhileEveryAnswerIsTheModels) {
  const reports::Maintenance maintenance(store_->router(),
                                         {.interval_ms = 1, .share = 50, .min_chunks = 2, .quiet_ms = 0});
  RunHistory("maintained migrating report history");
  EXPECT_GT(maintenance.figures().rounds, 0u) << maintenance.figures().last_error;
}

}  // namespace
}  // namespace kvstore::testing
