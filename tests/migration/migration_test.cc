#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Datasets migrate between real backends under load.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

TEST_F(MigrationTest, RowsMoveToShardsAndBackAndThereForGood) {
  const uint64_t seed = Seed("migration");
  Create({.name = "events"});
  History history(Clients::kKeys);
  {
    Clients clients(store_->router(), "events", history, 6, seed);
    const StaleClient stale(store_->StaleRows("events"), history, seed + 77);
    clients.Work(200);
    store_->Do("create", "events", To("mysql"));
    EXPECT_EQ(store_->PhaseOf("events"), "created");
    store_->Do("start", "events");
    store_->Await("events", "ready");
    clients.Work(200);
    EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
    store_->Do("cutover", "events");
    store_->Await("events", "reversible");
    EXPECT_EQ(store_->BackendOf("events"), "mysql");
    const std::string events = store_->Do("status", "events")["events"].dump();
    EXPECT_NE(events.find("'mysql' serves; writes were held for"), std::string::npos) << events;
    clients.Work(200);
    store_->Do("reverse", "events");
    store_->Await("events", "ready");
    EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
    clients.Work(200);
    store_->Do("cutover", "events");
    store_->Await("events", "reversible");
    clients.Work(200);
    store_->Do("verify", "events");
    EXPECT_TRUE(Eventually([&] { return store_->Do("status", "events")["verify_passes"] >= 2; }));
    store_->Await("events", "reversible");
    store_->Do("finish", "events");
    store_->Await("events", "finished");
    clients.Work(200);
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(Traces("events"), (std::set<std::string>{"events"}));
  // And back again, by a migration of its own.
  {
    Clients clients(store_->router(), "events", history, 6, seed + 100);
    store_->Do("create", "events", {{"target", "rocksdb"}, {"share", 100}, {"auto", true}});
    store_->Do("start", "events");
    store_->Await("events", "reversible");
    EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
    clients.Work(200);
    store_->Do("finish", "events");
    store_->Await("events", "finished");
    clients.Work(100);
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_EQ(Traces("events"), (std::set<std::string>{}));
  ASSERT_OK(store_->router().DropDataset("events", {}));
}

TEST_F(MigrationTest, CancelledAtAnyPhaseItLeavesNoTrace) {
  const uint64_t seed = Seed("migration");
  Create({.name = "events"});
  History history(Clients::kKeys);
  for (const std::string phase : {"created", "backfill", "ready", "reversible"}) {
    Clients clients(store_->router(), "events", history, 4, seed);
    clients.Work(50);
    store_->Do("create", "events",
               {{"target", "mysql"},
                {"units_per_s", phase == "backfill" ? 100 : 0},
                {"auto", phase == "reversible"}});
    if (phase != "created") {
      store_->Do("start", "events");
      store_->Await("events", phase);
    }
    clients.Work(50);
    store_->Do(phase == "reversible" ? "rollback" : "cancel", "events");
    store_->Await("events", "aborted");
    clients.Work(50);
    EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
    EXPECT_EQ(Traces("events"), (std::set<std::string>{})) << phase;
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  EXPECT_OK(store_->router().AlterDataset("events", {.ttl_ms = 1'000'000}));
}

TEST_F(MigrationTest, WhatTheStateForbidsIsRefusedWithAReason) {
  Create({.name = "events"});
  const auto refused = FailsWith(absl::StatusCode::kFailedPrecondition, "possible now");
  EXPECT_THAT(store_->Try("status", "events"), FailsWith(absl::StatusCode::kNotFound, "does not migrate"));
  EXPECT_THAT(store_->Try("create", "events", {{"target", "rocksdb"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "target: the dataset is on"));
  EXPECT_THAT(store_->Try("create", "events", {{"target", "none"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "none named 'none'"));
  EXPECT_THAT(store_->Try("create", "nothing", To("mysql")), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(store_->Try("create", "events", {{"target", "mysql"}, {"speed", 3}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "speed"));
  // A dry run changes nothing.
  EXPECT_OK(store_->Try("create", "events", {{"target", "mysql"}, {"dry_run", true}}));
  EXPECT_EQ(store_->PhaseOf("events"), "none");
  store_->Do("create", "events", To("mysql"));
  EXPECT_THAT(store_->Try("create", "events", To("mysql")), FailsWith(absl::StatusCode::kAlreadyExists, ""));
  for (const char* command : {"cutover", "reverse", "rollback", "finish", "verify"}) {
    EXPECT_THAT(store_->Try(command, "events"), refused) << command;
  }
  store_->Do("start", "events");
  store_->Await("events", "ready");
  for (const char* command : {"start", "reverse", "rollback", "finish"}) {
    EXPECT_THAT(store_->Try(command, "events"), refused) << command;
  }
  const auto migrates = FailsWith(absl::StatusCode::kFailedPrecondition, "migrates between");
  EXPECT_THAT(store_->router().DropDataset("events", {}), migrates);
  EXPECT_THAT(store_->router().AlterDataset("events", {.ttl_ms = 5}), migrates);
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  for (const char* command : {"start", "cutover", "cancel"}) {
    EXPECT_THAT(store_->Try(command, "events"), refused) << command;
  }
  EXPECT_THAT(store_->Try("list", "")->dump(), ::testing::HasSubstr("reversible"));
  store_->Do("rollback", "events");
  store_->Await("events", "aborted");
}

TEST_F(MigrationTest, OfTwoCommandsThatCrossOneIsDoneAndTheOtherRefused) {
  Create({.name = "events"});
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  // The worker has seen the first request, but has not begun it.
  std::promise<void> seen;
  std::promise<void> goes_on;
  std::atomic<bool> once{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "follow.asked" || once.exchange(true)) return;
    seen.set_value();
    goes_on.get_future().wait();
  });
  store_->Do("reverse", "events");
  seen.get_future().wait();
  EXPECT_THAT(store_->Try("finish", "events"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "reverse was asked for before"));
  EXPECT_OK(store_->Try("reverse", "events")) << "the same once more";
  // A request that may replace it does, and the worker does not begin the one that was replaced.
  EXPECT_OK(store_->Try("rollback", "events"));
  goes_on.set_value();
  store_->Await("events", "aborted");
  SetFailPointHook(nullptr);
  EXPECT_EQ(store_->router().GetDataset("events")->backend, "rocksdb");
}

TEST_F(MigrationTest, ACutoverIsGivenUpWhileAReaderHoldsATable) {
  Create({.name = "events", .backend = "mysql"});
  store_->Do("create", "events", To("rocksdb"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  const auto other =
      *mysql::Connection::Open({"127.0.0.1", SharedFleet().server(0).port()}, TestFleet::Options());
  other->Run("START TRANSACTION");
  other->Ask("SELECT COUNT(*) FROM mod00000.events");
  store_->Do("cutover", "events");
  EXPECT_TRUE(Eventually([&] {
    const Json status = store_->Do("status", "events");
    return status.value("problem", "").find("has had a transaction open") != std::string::npos;
  }));
  store_->Await("events", "ready");
  const CellWrite cell{"c", "v", std::nullopt};
  EXPECT_OK(store_->router().PutRow("events", "r", {&cell, 1}, {}));
  other->Run("COMMIT");
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(store_->router().GetRow("events", "r", {})->items.size(), 1u);
}

TEST_F(MigrationTest, AScanThatIsOpenShowsWhatThereWasWhenItBegan) {
  Create({.name = "events"});
  Router& router = store_->router();
  for (int i = 0; i < 100; ++i) {
    const CellWrite cell{"c", "v", std::nullopt};
    ASSERT_OK(router.PutRow("events", fmt::format("r{:03}", i), {&cell, 1}, {}));
  }
  ASSERT_OK_AND_ASSIGN(auto cursor, router.ScanRows("events", {}, {}));
  ScannedRow row;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(*cursor->Next(row));
  store_->Do("create", "events", {{"target", "mysql"}, {"share", 100}, {"auto", true}});
  store_->Do("start", "events");
  store_->Await("events", "reversible");
  int rest = 0;
  while (*cursor->Next(row)) ++rest;
  EXPECT_EQ(rest, 50);
  store_->Do("rollback", "events");
  store_->Await("events", "aborted");
}

TEST_F(MigrationTest, ARowOfManyColumnsAndDeletesOfAllOfItAreCopied) {
  Create({.name = "wide", .max_versions = 2});
  Router& router = store_->router();
  const auto put = [&](int from, int to, uint64_t timestamp) {
    std::vector<std::string> names;
    for (int i = from; i < to; ++i) names.push_back(fmt::format("{:06}", i));
    for (size_t at = 0; at < names.size(); at += 1000) {
      std::vector<CellWrite> cells;
      for (size_t i = at; i < std::min(names.size(), at + 1000); ++i)
        cells.push_back({names[i], "v", timestamp});
      ASSERT_OK(router.PutRow("wide", "row", cells, {}));
    }
  };
  put(0, 100'000, 5);
  put(0, 1000, 6);
  const auto count = [&] {
    uint64_t cells = 0;
    ReadOptions options{.versions = 3, .limit = 10'000};
    for (;;) {
      const auto page = router.GetRow("wide", "row", options);
      EXPECT_OK(page);
      if (!page.ok()) return cells;
      for (const Item& item : page->items) cells += item.cells.size();
      if (page->marker.empty()) return cells;
      options.marker = page->marker;
    }
  };
  EXPECT_EQ(count(), 101'000u);
  store_->Do("create", "wide", To("mysql"));
  store_->Do("start", "wide");
  store_->Await("wide", "ready");
  // Puts older timestamps again, after a delete of so many cells that it is a range tombstone.
  ASSERT_OK(router.DeleteRow("wide", "row", {}));
  put(500, 700, 1);
  store_->Do("cutover", "wide");
  store_->Await("wide", "reversible");
  EXPECT_EQ(count(), 200u);
  store_->Do("verify", "wide");
  EXPECT_TRUE(Eventually([&] { return store_->Do("status", "wide")["verify_passes"] >= 2; }));
  EXPECT_EQ(store_->Do("status", "wide")["differences"], 0);
  store_->Await("wide", "reversible");
  store_->Do("rollback", "wide");
  store_->Await("wide", "aborted");
  EXPECT_EQ(count(), 200u);
}

TEST_F(MigrationTest, CellsExpireAndVersionsOverflowWhileTheyAreCopied) {
  constexpr uint32_t kVersions = 3;
  constexpr uint64_t kTtlMs = 5'000;
  constexpr int kRows = 60;
  Create({.name = "events", .max_versions = kVersions, .ttl_ms = kTtlMs});
  Router& router = store_->router();
  std::atomic<bool> stop{false};
  std::vector<std::map<uint64_t, std::string>> put(kRows);  // by row: all that was put, by timestamp
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      Random random(Seed("overflow") + static_cast<uint64_t>(t));
      while (!stop) {
        // Each thread has rows of its own. Some cells are older than those that are there, some as good as
        // expired.
        const size_t row = random.Below(kRows / 3) * 3 + static_cast<size_t>(t);
        const uint64_t timestamp = WallClockMs() - random.Below(random.OneIn(3) ? kTtlMs : 50);
        const std::string value = std::to_string(random.Next());
        const CellWrite cell{"c", value, timestamp};
        ASSERT_OK(router.PutRow("events", fmt::format("r{:02}", row), {&cell, 1}, {}));
        put[row][timestamp] = value;
        // Throttled, so that the copy can keep up.
        std::this_thread::sleep_for(std::chrono::microseconds(random.Below(2000)));
      }
    });
  }
  const auto go = [&](const std::string& command, const std::string& phase) {
    store_->Do(command, "events");
    store_->Await("events", phase);
  };
  store_->Do("create", "events", {{"target", "mysql"}, {"share", 100}});
  go("start", "ready");
  go("cutover", "reversible");
  store_->Do("verify", "events");
  EXPECT_TRUE(Eventually([&] { return store_->Do("status", "events")["verify_passes"] >= 2; }));
  store_->Await("events", "reversible");
  go("reverse", "ready");
  go("cutover", "reversible");
  stop = true;
  for (std::thread& writer : writers) writer.join();
  // The limits of versions and age apply when a row is read.
  size_t seen = 0;
  for (int row = 0; row < kRows; ++row) {
    const uint64_t before = WallClockMs();
    const auto read = router.GetRow("events", fmt::format("r{:02}", row), {.versions = 10});
    const uint64_t after = WallClockMs();
    ASSERT_OK(read);
    std::map<uint64_t, std::string> cells;
    if (!read->items.empty()) {
      for (const Cell& cell : read->items[0].cells) cells[cell.timestamp] = cell.value;
    }
    EXPECT_LE(cells.size(), kVersions);
    seen += cells.size();
    const auto& all = put[static_cast<size_t>(row)];
    uint32_t newest = 0;
    for (auto cell = all.rbegin(); cell != all.rend() && newest < kVersions; ++cell, ++newest) {
      const bool may_be_expired = after > cell->first + kTtlMs;
      if (!may_be_expired) {
        EXPECT_EQ(cells[cell->first], cell->second) << "row " << row << " lacks a cell";
      }
      if (before > cell->first + kTtlMs) {
        EXPECT_FALSE(cells.contains(cell->first)) << "an expired one is back";
      }
    }
    for (const auto& [timestamp, value] : cells) {
      const auto known = all.find(timestamp);
      ASSERT_TRUE(known != all.end() && known->second == value) << "row " << row << " has what nobody put";
      EXPECT_LT(std::distance(known, all.end()), kVersions + 1) << "a surplus version is back";
    }
  }
  EXPECT_GT(seen, 0u);
  EXPECT_EQ(store_->Do("status", "events")["differences"], 0);
  go("finish", "finished");
}

TEST_F(MigrationTest, APlantedDifferenceIsFoundAndRepaired) {
  Create({.name = "events"});
  Router& router = store_->router();
  for (int i = 0; i < 500; ++i) {
    const CellWrite cell{"c", "v", 7};
    ASSERT_OK(router.PutRow("events", fmt::format("r{:03}", i), {&cell, 1}, {}));
  }
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  EXPECT_EQ(store_->Do("status", "events")["differences"], 0);
  // Differences that no log records: one cell is removed, one changed, and one added.
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    const std::string table = fmt::format("`mod{:05}`.`events$away`", shard);
    auto& server = SharedFleet().OfShard(shard);
    server.Run(fmt::format("DELETE FROM {} WHERE row_key = 'r100'", table));
    server.Run(fmt::format("UPDATE {} SET value = 'w' WHERE row_key = 'r200'", table));
    if (shard == 3) server.Run(fmt::format("INSERT INTO {} VALUES ('zzz', 'c', 1, 'v')", table));
  }
  store_->Do("verify", "events");
  EXPECT_TRUE(Eventually([&] { return store_->Do("status", "events")["verify_passes"] >= 3; }));
  store_->Await("events", "ready");
  const Json status = store_->Do("status", "events");
  EXPECT_GE(status["differences"].get<int>(), 2);
  EXPECT_EQ(status["differences"], status["repaired"]);
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  for (const char* row : {"r100", "r200"}) {
    const auto read = router.GetRow("events", row, {});
    ASSERT_OK(read);
    ASSERT_EQ(read->items.size(), 1u) << row;
    EXPECT_EQ(read->items[0].cells[0].value, "v");
  }
}

TEST_F(MigrationTest, ItGoesOnWhereAProcessBeforeStopped) {
  const uint64_t seed = Seed("migration");
  Create({.name = "events"});
  History history(Clients::kKeys);
  {
    Clients clients(store_->router(), "events", history, 4, seed);
    clients.Work(200);
    store_->Do("create", "events", {{"target", "mysql"}, {"units_per_s", 20}});
    store_->Do("start", "events");
    store_->Await("events", "backfill");
  }
  for (const std::string phase : {"ready", "reversible", "ready", "reversible"}) {
    store_.reset();
    store_ = std::make_unique<MigratingStore>(dir_.path());
    store_->migrator().TakeOverAbandoned();
    Clients clients(store_->router(), "events", history, 4, seed);
    store_->Do("throttle", "events", {{"units_per_s", 0}, {"share", 100}});
    const std::string before = store_->PhaseOf("events");
    if (before == "ready") store_->Do("cutover", "events");
    if (before == "reversible") store_->Do("reverse", "events");
    store_->Await("events", phase);
    clients.Work(100);
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  store_.reset();
  store_ = std::make_unique<MigratingStore>(dir_.path());
  store_->migrator().TakeOverAbandoned();
  store_->Do("finish", "events");
  store_->Await("events", "finished");
  Clients clients(store_->router(), "events", history, 4, seed);
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(MigrationTest, ACreateDoesNotTakeOverTheClaimsOfAnotherMigration) {
  Create({.name = "events"});
  // A migration that was created, and is not started, does not show in the dataset's entry.
  const auto claims = [&] {
    const auto held = store_->router().keeper().ledger().List();
    return held.ok() && held->size() == 1 ? held->front().id : "";
  };
  store_->Do("create", "events", To("mysql"));
  const std::string before = claims();
  EXPECT_FALSE(before.empty());
  EXPECT_THAT(store_->Try("create", "events", To("mysql")),
              FailsWith(absl::StatusCode::kAlreadyExists, "migrates already"));
  EXPECT_EQ(claims(), before);
}

}  // namespace
}  // namespace kvstore::testing
