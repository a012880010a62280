#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "client/reports.h"
#include "reports/maintenance.h"
#include "server/server.h"
#include "tests/migration/migration_fixture.h"
#include "tests/reports/report_choices.h"
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

/// A query runs in the server, which is next to the shards; what comes over the network is the answer alone.
TEST_F(ReportsOnShards, ThroughAServerTheAnswersAreTheSame) {
  Create({.name = "reports", .backend = "mysql"});
  RunReportHistory(store_->router(), {.seed = Seed("served report on shards"), .steps = 60});
  ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  const auto server = Server::Start(store_->router(), options);
  ASSERT_OK(server);
  const auto remote = client::ConnectReports((*server)->addresses().front(), {}, "reports");
  ASSERT_OK(remote);
  const auto local = reports::LocalReports(store_->router(), "reports");
  ASSERT_OK_AND_ASSIGN(const auto described, local->Describe("flights", std::nullopt));
  // In the order in which choices are made of them.
  reports::ReportInfo info = described.info;
  info.metrics = ReportChoices(0).Report().metrics;
  ReportChoices choices(Seed("queries on shards"));
  uint64_t series = 0;
  for (uint64_t i = Rounds("KV_TEST_OPERATIONS", 60); i > 0 && !HasFailure(); --i) {
    const reports::Query query = i % 3 == 0 ? choices.WideQuery(info) : choices.PlainQuery(info);
    const auto expected = local->Run(query);
    const auto answer = (*remote)->Run(query);
    ASSERT_EQ(answer.status(), expected.status());
    if (!expected.ok()) continue;
    ExpectSameSeries(answer->series, expected->series, query.metrics[0].name);
    series += answer->series.size();
  }
  EXPECT_GT(series, 0u);
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
