#include <functional>
#include <regex>
#include <string>

#include "tests/migration/crossing_fixture.h"

/// Sides that do not come back, steps that are cut off halfway, and datasets that are dropped, in the middle
/// of a migration.
namespace kvstore::testing {
namespace {

TEST_F(FaultyMySqlTest, WritesAreLetGoWhileTheTargetIsDown) {
  MigratingStore& store = OpenReady();
  // The worker dies in the middle of the cutover, and so do the target's hosts.
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.frozen") faults_.down = true;
  });
  store.Do("cutover", "events");
  ASSERT_TRUE(Eventually([&] { return faults_.down.load(); }));
  Open().migrator().TakeOverAbandoned();
  Put("while-it-is-down");
  EXPECT_TRUE(Eventually([&] { return store_->PhaseOf("events") == "ready"; }));
  SetFailPointHook(nullptr);
  faults_.down = false;
  EXPECT_TRUE(Eventually([&] {
    store_->Try("cutover", "events").IgnoreError();
    return store_->PhaseOf("events") == "reversible";
  }));
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(store_->router().GetRow("events", "while-it-is-down", {})->items.size(), 1u);
}

TEST_F(FaultyMySqlTest, ItIsCancelledAlthoughTheTargetIsGone) {
  MigratingStore& store = OpenReady();
  EXPECT_THAT(store.Try("abandon", "events", {{"gone", "mysql"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "'mysql' answers: kv migrate cancel"));
  faults_.down = true;
  Put("one-more");
  store.Do("cancel", "events");
  // The source records no writes any more; only the removal of the target waits for the target.
  EXPECT_TRUE(Eventually([&] { return store.PhaseOf("events") == "aborting"; }));
  EXPECT_TRUE(Eventually([&] { return !Field("problem").empty(); }));
  Put("and-another");
  store.Do("abandon", "events", {{"gone", "mysql"}});
  store.Await("events", "aborted");
  EXPECT_OK(store.router().AlterDataset("events", {.ttl_ms = 1'000'000'000}));
  EXPECT_EQ(Count("row", 10), 10);
  // When the target comes back, the tables that were left there do not disturb a new migration.
  faults_.down = false;
  Cross();
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(store.router().GetRow("events", "and-another", {})->items.size(), 1u);
}

TEST_F(FaultyMySqlTest, TheSourceServesAgainWhenTheTargetIsGoneForGood) {
  MigratingStore& store = OpenCrossed("row", 10);
  Put("after");
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  faults_.down = true;
  store.Do("abandon", "events", {{"gone", "mysql"}});
  store.Await("events", "aborted");
  EXPECT_EQ(store.BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(store.router().GetRow("events", "after", {})->items.size(), 1u);
  EXPECT_OK(store.router().AlterDataset("events", {.ttl_ms = 1'000'000'000}));
}

// ---- a cutover that the catalog knows, and the record does not ----

/// Stops the worker for good where clients are routed to mysql already and the record does not say so yet.
/// `then` acts there before the process ends.
class RoutedTest : public FaultyMySqlTest {
 protected:
  void EndAtRouted(const std::function<void(MigratingStore&)>& then) {
    MigratingStore& store = OpenReady();
    std::atomic<bool> reached{false};
    SetFailPointHook([&](std::string_view point) {
      if (point != "cutover.routed" || reached) return;
      then(store);
      store.SetCatalogTrouble(CatalogTrouble::kDown);
      reached = true;
    });
    store.Do("cutover", "events");
    ASSERT_TRUE(Eventually([&] { return reached.load(); }));
    Open();
    SetFailPointHook(nullptr);
    store_->migrator().TakeOverAbandoned();
  }
  bool HasEvent(const std::string& text) {
    return store_->Do("status", "events")["events"].dump().find(text) != std::string::npos;
  }
};

TEST_F(RoutedTest, TheSideThatTheCatalogNamesIsNotGivenUpAsTheCopy) {
  EndAtRouted([&](MigratingStore& store) {
    Put("late");
    faults_.down = true;
    EXPECT_OK(store.Try("abandon", "events", {{"gone", "mysql"}}));
  });
  EXPECT_TRUE(Eventually([&] { return HasEvent("'mysql' is the truth now, and is not given up"); }))
      << store_->Do("status", "events").dump(1);
  EXPECT_EQ(Field("truth"), "mysql");
  EXPECT_EQ(Field("wanted"), "nothing");
  EXPECT_EQ(store_->BackendOf("events"), "mysql");
  faults_.down = false;
  store_->Await("events", "reversible");
  EXPECT_EQ(store_->router().GetRow("events", "late", {})->items.size(), 1u);
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(RoutedTest, AnOperatorWhoKnowsThatItWasTheTruthGivesItUp) {
  EndAtRouted([&](MigratingStore& store) {
    faults_.down = true;
    EXPECT_OK(store.Try("abandon", "events", {{"gone", "mysql"}}));
  });
  EXPECT_TRUE(Eventually([&] { return Field("truth") == "mysql" && Field("wanted") == "nothing"; }));
  store_->Do("abandon", "events", {{"gone", "mysql"}});
  store_->Await("events", "aborted");
  EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(RoutedTest, AHostThatIsRestartedThereDoesNotTakeTheDatasetOffline) {
  EndAtRouted([&](MigratingStore&) {
    Put("late");
    ++faults_.restarts;
  });
  store_->Await("events", "reversible");
  EXPECT_EQ(Field("doubt"), "") << "it has lost nothing";
  EXPECT_EQ(Field("truth"), store_->BackendOf("events"));
  Put("more");
  EXPECT_EQ(store_->router().GetRow("events", "late", {})->items.size(), 1u);
}

// ---- steps that are cut off half way ----

TEST_F(FaultyMySqlTest, ABackOutThatWasCutOffIsFinishedWhileClientsWrite) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 40);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  // Only some shards become `moved`, and the transition back changes only some of those.
  faults_.failing_transitions = 1;
  std::atomic<bool> backing{false};
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.counted" && !backing.exchange(true)) faults_.broken = EndpointState::kMoved;
  });
  store.Do("cutover", "events");
  ASSERT_TRUE(Eventually([&] { return faults_.failing_transitions == 0; }));
  faults_.broken = EndpointState::kServing;
  faults_.failing_transitions = 1;
  // Writers never stop.
  History history(Clients::kKeys);
  Clients clients(store.router(), "events", history, 3, 7);
  clients.Work(20);
  EXPECT_TRUE(Eventually([&] { return store.PhaseOf("events") == "ready" && Count("row", 40) == 40; }))
      << store.Do("status", "events").dump(1);
  clients.Work(20);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(FaultyMySqlTest, ACutoverThatTakesTooLongBehindTheDrainIsGivenUp) {
  MigratingStore& store = OpenReady({{"target", "mysql"}, {"share", 100}, {"freeze_ms", 1000}});
  std::atomic<bool> slow{true};
  SetFailPointHook([&](std::string_view point) {
    // Stands for counters that take this long to raise.
    if (point == "cutover.empty" && slow.exchange(false))
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  });
  store.Do("cutover", "events");
  EXPECT_TRUE(Eventually([&] { return Field("problem").find("which is the limit") != std::string::npos; }));
  store.Await("events", "ready");
  EXPECT_EQ(store.BackendOf("events"), "rocksdb");
  Put("goes-on");
}

// ---- datasets that are dropped ----

TEST_F(FaultyMySqlTest, TheTableOfAnotherCatalogsDatasetIsNotRemoved) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  PutMany("row", 5);
  auto& server = SharedFleet().OfShard(3);
  server.Run(
      "CREATE TABLE mod00003.events (row_key VARBINARY(9)) COMMENT 'kvstore incarnation=77'; INSERT INTO "
      "mod00003.events VALUES ('theirs')");
  store.Do("create", "events", To("mysql"));
  store.Do("start", "events");
  EXPECT_TRUE(Eventually([&] {
    return Field("problem").find("is of another dataset of that name") != std::string::npos;
  })) << store.Do("status", "events").dump(1);
  // An operator who follows the advice in `problem` loses nothing.
  const std::string problem = Field("problem");
  ASSERT_NE(problem.find("RENAME TABLE "), std::string::npos) << problem;
  std::smatch rename;
  ASSERT_TRUE(
      std::regex_search(problem, rename, std::regex("RENAME TABLE `[^`]+`\\.`[^`]+` TO `[^`]+`\\.`[^`]+`")));
  server.Run(rename[0]);
  EXPECT_NE(server.Run("SELECT row_key FROM mod00003.events_aside").find("theirs"), std::string::npos);
  store.Await("events", "ready");
  store.Do("cancel", "events");
  store.Await("events", "aborted");
}

TEST_F(FaultyMySqlTest, AMigrationThatWasNeverStartedGoesWithItsDataset) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  store.Do("create", "events", To("mysql"));
  // Earlier versions allowed this, and by hand it is still possible.
  ASSERT_OK(store.router().keeper().WithCatalog([&](Catalog& catalog) {
    auto contents = *catalog.Load();
    CatalogEntry entry = contents.entries.at(0);
    entry.spec.incarnation += 1;
    return catalog.Put(entry, contents.version).status();
  }));
  Open();
  store_->Do("create", "events", To("mysql"));
  store_->Do("cancel", "events");
  store_->Await("events", "aborted");
  ASSERT_OK(store_->router().keeper().WithCatalog(
      [&](Catalog& catalog) { return catalog.Remove("events", catalog.Load()->version).status(); }));
}

TEST_F(FaultyMySqlTest, ACancelOfAMigrationWhoseDatasetIsGoneForgetsIt) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  store.Do("create", "events", To("mysql"));
  ASSERT_OK(store.router().keeper().WithCatalog(
      [&](Catalog& catalog) { return catalog.Remove("events", catalog.Load()->version).status(); }));
  // A worker that has noticed it by now has cancelled the migration.
  if (const auto cancelled = store.Try("cancel", "events"); !cancelled.ok()) {
    EXPECT_THAT(cancelled, FailsWith(absl::StatusCode::kFailedPrecondition, "is in phase aborted"));
  }
  EXPECT_TRUE(Eventually([&] {
    const std::string phase = store.PhaseOf("events");
    return phase == "aborted" || phase == "none";
  }));
}

TEST_F(FaultyMySqlTest, WhatACreateThatWasCutShortHasClaimedIsCancelled) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  // An earlier migration, which has ended here, is not the one that is cancelled.
  store.Do("create", "events", To("mysql"));
  store.Do("cancel", "events");
  store.Await("events", "aborted");
  // The process died after it had claimed the dataset, and before it had stored the record.
  CatalogKeeper& keeper = store.router().keeper();
  const DatasetSpec here = *store.router().GetDataset("events");
  DatasetSpec there = here;
  there.backend = "mysql";
  ASSERT_OK(keeper.ledger().Begin(keeper.MigrationOf(here, there)));
  EXPECT_THAT(store.router().DropDataset("events", {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "kv migrate cancel events ends it"));
  EXPECT_THAT(store.Try("cancel", "events", {{"dry_run", true}}),
              FailsWith(absl::StatusCode::kNotFound, "does not migrate"));
  EXPECT_EQ(keeper.ledger().List()->size(), 1u);
  EXPECT_THAT(store.Try("cancel", "events"),
              FailsWith(absl::StatusCode::kNotFound, "what it had claimed is free now"));
  EXPECT_TRUE(keeper.ledger().List()->empty());
  EXPECT_OK(store.router().DropDataset("events", {}));
}

TEST_F(FaultyMySqlTest, OfTwoCreatesAtTheSameMomentTheSecondLeavesTheClaimsOfTheFirst) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  Ledger& ledger = store.router().keeper().ledger();
  // The other create runs while this one stands at a step: before it has claimed anything, or after that.
  for (const char* const point : {"create.free", "create.claimed"}) {
    SCOPED_TRACE(point);
    absl::Status other;
    std::string first;
    SetFailPointHook([&](std::string_view name) {
      if (name != point) return;
      SetFailPointHook(nullptr);
      other = store.Try("create", "events", To("mysql")).status();
      const auto held = ledger.List();
      ASSERT_OK(held.status());
      ASSERT_EQ(held->size(), 1u);
      first = held->front().id;
    });
    const absl::Status created = store.Try("create", "events", To("mysql")).status();
    SetFailPointHook(nullptr);
    EXPECT_NE(created.ok(), other.ok()) << created << ", " << other;
    EXPECT_THAT(created.ok() ? other : created, FailsWith(absl::StatusCode::kAlreadyExists, "events"));
    ASSERT_OK_AND_ASSIGN(const auto held, ledger.List());
    ASSERT_EQ(held.size(), 1u);
    EXPECT_EQ(held.front().id, first);
    store.Do("cancel", "events");
    store.Await("events", "aborted");
    EXPECT_TRUE(Eventually([&] { return ledger.List()->empty(); }));
  }
}

TEST_F(FaultyMySqlTest, ARecordThatCannotBeReadDoesNotKeepOthersFromGoingOn) {
  OpenReady();
  MigratingStore& store = Open();
  ASSERT_OK(store.router().keeper().WithCatalog(
      [](Catalog& catalog) { return catalog.PutRecord("a-damaged-one", "{}", -1).status(); }));
  store.migrator().TakeOverAbandoned();
  // The lag is known to the process that runs the migration.
  EXPECT_TRUE(Eventually([&] { return store.Do("status", "events").contains("lag"); }));
  EXPECT_THAT(store.Try("status", "a-damaged-one"),
              FailsWith(absl::StatusCode::kDataLoss, "dataset: 'a-damaged-one': the migration's record"));
}

TEST_F(FaultyMySqlTest, ARecordThatCannotBeReadDoesNotHideOthers) {
  MigratingStore& store = OpenReady();
  ASSERT_OK(store.router().keeper().WithCatalog([](Catalog& catalog) -> absl::Status {
    EXPECT_OK(catalog.PutRecord("a-damaged-one", "{", -1));
    return catalog.PutRecord("newer", R"({"format": 3})", -1).status();
  }));
  ASSERT_OK_AND_ASSIGN(const Json list, store.Try("list", ""));
  const Json& all = list["migrations"];
  ASSERT_EQ(all.size(), 3u) << list.dump(1);
  EXPECT_EQ(all[0]["dataset"], "a-damaged-one");
  EXPECT_EQ(all[0]["phase"], "unreadable");
  EXPECT_THAT(all[0].value("problem", ""), ::testing::HasSubstr("docs/runbook.md"));
  EXPECT_EQ(all[1]["dataset"], "events");
  EXPECT_EQ(all[1]["phase"], "ready");
  EXPECT_EQ(all[2]["dataset"], "newer");
  EXPECT_THAT(all[2].value("problem", ""), ::testing::HasSubstr("written by a newer version"));
  EXPECT_THAT(store.Try("status", "newer"),
              FailsWith(absl::StatusCode::kDataLoss, "dataset: 'newer': the migration's record"));
  // Nothing is done to a migration of which nothing is known.
  EXPECT_THAT(store.Try("cancel", "newer"), FailsWith(absl::StatusCode::kDataLoss, "newer version"));
}

TEST_F(FaultyMySqlTest, ARecordThatIsAnotherMigrationsIsNotRemoved) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  store.Do("create", "events", To("mysql"));
  ASSERT_OK(store.router().keeper().WithCatalog([&](Catalog& catalog) -> absl::Status {
    const auto first = catalog.GetRecord("events");
    EXPECT_OK(first);
    EXPECT_OK(catalog.RemoveRecord("events", first->version));
    const auto next = catalog.PutRecord("events", first->text, -1);
    EXPECT_OK(next);
    // A worker of the first migration wakes up.
    EXPECT_THAT(catalog.RemoveRecord("events", first->version), FailsWith(absl::StatusCode::kAborted, ""));
    const auto contents = *catalog.Load();
    CatalogEntry entry = contents.entries.at(0);
    entry.other_backend = "mysql";
    EXPECT_THAT(catalog.Put(entry, contents.version, RecordFence{"events", first->version}),
                FailsWith(absl::StatusCode::kAborted, ""));
    EXPECT_EQ(catalog.Load()->entries, contents.entries) << "nothing changed";
    return catalog.RemoveRecord("events", *next);
  }));
}

}  // namespace
}  // namespace kvstore::testing
