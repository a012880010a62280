#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Migrations whose catalog is down, hangs, loses answers or is damaged.
namespace kvstore::testing {
namespace {

TEST_F(MigrationTest, AnswersOfTheCatalogThatGetLostDoNotStopTheWorker) {
  Create({.name = "events"});
  const CellWrite cell{"c", "v", std::nullopt};
  ASSERT_OK(store_->router().PutRow("events", "r", {&cell, 1}, {}));
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->SetCatalogTrouble(CatalogTrouble::kAnswersLost);
  // The request is stored but its answer is lost, so the worker's version of the record is not the stored
  // one.
  EXPECT_THAT(store_->Try("throttle", "events", {{"share", 7}}),
              FailsWith(absl::StatusCode::kUnavailable, ""));
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  EXPECT_EQ(store_->Do("status", "events")["limits"]["share"], 100) << "not in force";
  store_->Do("throttle", "events", {{"share", 9}});
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
}

TEST_F(MigrationTest, AStartAfterACancelThatCouldNotBeStoredStarts) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->SetCatalogTrouble(CatalogTrouble::kStoresNothing);
  // A cancel begins a worker, which waits for what was not recorded.
  EXPECT_THAT(store_->Try("cancel", "events"), FailsWith(absl::StatusCode::kUnavailable, ""));
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  EXPECT_EQ(store_->PhaseOf("events"), "created");
  store_->Do("start", "events");
  store_->Await("events", "ready");
}

TEST_F(MigrationTest, ACommandThatCouldNotBeStoredIsNotInTheLog) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->SetCatalogTrouble(CatalogTrouble::kDown);
  EXPECT_THAT(store_->Try("pause", "events"),
              FailsWith(absl::StatusCode::kUnavailable, "the catalog is down"));
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  EXPECT_EQ(store_->Do("status", "events")["paused"], false);
  store_->Do("throttle", "events", {{"share", 9}});
  store_.reset();  // No thread uses the logger any more.
  spdlog::set_default_logger(before);
  EXPECT_EQ(log.str().find("paused"), std::string::npos) << log.str();
  EXPECT_NE(log.str().find("9 % of the time"), std::string::npos) << log.str();
}

TEST_F(MigrationTest, WhileTheCatalogHangsACommandEndsWithItsCallerAndAStopWaitsForNobody) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->SetCatalogTrouble(CatalogTrouble::kHangs);
  std::future<absl::StatusOr<Json>> first = std::async(std::launch::async, [&] {
    return store_->Try("throttle", "events", {{"share", 9}});
  });
  store_->AwaitHangingCatalog();
  EXPECT_EQ(store_->PhaseOf("events"), "ready") << "the state is shown";
  {
    const CallScope scope(std::chrono::milliseconds(20));
    EXPECT_THAT(store_->Try("pause", "events"),
                FailsWith(absl::StatusCode::kDeadlineExceeded, "the record of the migration of 'events'"));
  }
  {
    const std::atomic<bool> gone{true};
    const CallScope scope(CallLimits{.cancelled = &gone});
    EXPECT_THAT(store_->Try("pause", "events"),
                FailsWith(absl::StatusCode::kCancelled, "nothing was changed"));
  }
  EXPECT_EQ(store_->Do("status", "events")["paused"], false);
  // A process is told to stop by a signal, and goes on to end its calls.
  store_->migrator().Stop();
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  EXPECT_OK(first.get());
  EXPECT_EQ(store_->Do("status", "events")["limits"]["share"], 9);
}

TEST_F(MigrationTest, CommandsThatChangeDifferentLimitsDoNotUndoEachOther) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->SetCatalogTrouble(CatalogTrouble::kHangs);
  const auto throttle = [&](const Json& limits) {
    return std::async(std::launch::async, [&, limits] { return store_->Try("throttle", "events", limits); });
  };
  auto first = throttle({{"units_per_s", 1000}});
  store_->AwaitHangingCatalog();
  auto second = throttle({{"max_read_us", 5}});
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  EXPECT_OK(first.get());
  EXPECT_OK(second.get());
  const Json limits = store_->Do("status", "events")["limits"];
  EXPECT_EQ(limits["units_per_s"], 1000);
  EXPECT_EQ(limits["max_read_us"], 5);
}

TEST_F(MigrationTest, ACutoverWhoseEntryCannotBeReadTakesNothingOutOfUse) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->SetCatalogTrouble(CatalogTrouble::kDamaged);
  store_->Do("cutover", "events");
  EXPECT_TRUE(Eventually([&] {
    return store_->Do("status", "events").value("problem", "").find("cannot be read") != std::string::npos;
  })) << store_->Do("status", "events").dump();
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(store_->router().PutRow("events", "r", {&cell, 1}, {})) << "it is served as before";
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  store_->Await("events", "ready");
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(store_->BackendOf("events"), "mysql");
}

TEST_F(MigrationTest, AStopDoesNotWaitForAWorkerWhoseCatalogHangs) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  SetFailPointHook([&](std::string_view point) {
    if (point == "prepare.capture") store_->SetCatalogTrouble(CatalogTrouble::kHangs);
  });
  store_->Do("start", "events");
  store_->AwaitHangingCatalog();
  SetFailPointHook(nullptr);
  EXPECT_EQ(store_->PhaseOf("events"), "prepare");
  store_->migrator().Stop();
  store_->SetCatalogTrouble(CatalogTrouble::kNone);
  store_->migrator().Wait();
}

}  // namespace
}  // namespace kvstore::testing
