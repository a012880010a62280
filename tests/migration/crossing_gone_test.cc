#include "tests/migration/crossing_fixture.h"

/// Sides that do not come back, steps that are cut off half way, datasets that go, in the middle of a
/// migration.
namespace kvstore::testing {
namespace {

TEST_F(CrossingTest, WritesAreLetGoWhileTheTargetIsDown) {
  World& world = OpenReady();
  // The worker goes in the middle of the cutover, with the target's hosts.
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.frozen") faults_.down = true;
  });
  world.Do("cutover", "events");
  ASSERT_TRUE(Eventually([&] { return faults_.down.load(); }));
  Open().migrator().TakeOverAbandoned();
  Put("while-it-is-down");
  EXPECT_TRUE(Eventually([&] { return world_->PhaseOf("events") == "ready"; }));
  SetFailPointHook(nullptr);
  faults_.down = false;
  EXPECT_TRUE(Eventually([&] {
    world_->Try("cutover", "events").IgnoreError();
    return world_->PhaseOf("events") == "reversible";
  }));
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(world_->router().GetRow("events", "while-it-is-down", {})->items.size(), 1u);
}

TEST_F(CrossingTest, ItIsCancelledAlthoughTheTargetIsGone) {
  World& world = OpenReady();
  EXPECT_THAT(world.Try("abandon", "events", {{"gone", "mysql"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "'mysql' answers: kv migrate cancel"));
  faults_.down = true;
  Put("one-more");
  world.Do("cancel", "events");
  // Nothing is recorded any more, and what is left to do waits for the target.
  EXPECT_TRUE(Eventually([&] { return world.PhaseOf("events") == "aborting"; }));
  EXPECT_TRUE(Eventually([&] { return !Field("problem").empty(); }));
  Put("and-another");
  world.Do("abandon", "events", {{"gone", "mysql"}});
  world.Await("events", "aborted");
  EXPECT_OK(world.router().AlterDataset("events", {.ttl_ms = 1'000'000'000}));
  EXPECT_EQ(Count("row", 10), 10);
  // What is left there is not in the way when it comes back.
  faults_.down = false;
  Cross();
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(world.router().GetRow("events", "and-another", {})->items.size(), 1u);
}

TEST_F(CrossingTest, TheSourceServesAgainWhenTheTargetIsGoneForGood) {
  World& world = OpenCrossed("row", 10);
  Put("after");
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  faults_.down = true;
  world.Do("abandon", "events", {{"gone", "mysql"}});
  world.Await("events", "aborted");
  EXPECT_EQ(world.BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(world.router().GetRow("events", "after", {})->items.size(), 1u);
  EXPECT_OK(world.router().AlterDataset("events", {.ttl_ms = 1'000'000'000}));
}

// ---- steps that are cut off half way ----

TEST_F(CrossingTest, ABackOutThatWasCutOffIsFinishedWhileClientsWrite) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 40);
  world.Do("create", "events", To("rocksdb"));
  world.Do("start", "events");
  world.Await("events", "ready");
  // Some shards move, and the sweep back gets to some of them only.
  faults_.broken_enters = 1;
  std::atomic<bool> backing{false};
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.counted" && !backing.exchange(true)) faults_.broken = EndpointState::kMoved;
  });
  world.Do("cutover", "events");
  ASSERT_TRUE(Eventually([&] { return faults_.broken_enters == 0; }));
  faults_.broken = EndpointState::kServing;
  faults_.broken_enters = 1;
  // Writers never stop.
  History history(Clients::kKeys);
  Clients clients(world.router(), "events", history, 3, 7);
  clients.Work(20);
  EXPECT_TRUE(Eventually([&] { return world.PhaseOf("events") == "ready" && Count("row", 40) == 40; }))
      << world.Do("status", "events").dump(1);
  clients.Work(20);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(CrossingTest, ACutoverThatTakesTooLongBehindTheDrainIsGivenUp) {
  World& world = OpenReady({{"target", "mysql"}, {"share", 100}, {"freeze_ms", 1000}});
  std::atomic<bool> slow{true};
  SetFailPointHook([&](std::string_view point) {
    // As if the counters took as long.
    if (point == "cutover.empty" && slow.exchange(false))
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  });
  world.Do("cutover", "events");
  EXPECT_TRUE(
      Eventually([&] { return Field("problem").find("as long as they may be") != std::string::npos; }));
  world.Await("events", "ready");
  EXPECT_EQ(world.BackendOf("events"), "rocksdb");
  Put("goes-on");
}

// ---- datasets that go ----

TEST_F(CrossingTest, TheTableOfAnotherCatalogsDatasetIsNotRemoved) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 5);
  auto& server = SharedFleet().OfShard(3);
  server.Run(
      "CREATE TABLE mod00003.events (row_key VARBINARY(9)) COMMENT 'kvstore incarnation=77'; INSERT INTO "
      "mod00003.events VALUES ('theirs')");
  world.Do("create", "events", To("mysql"));
  world.Do("start", "events");
  EXPECT_TRUE(Eventually([&] {
    return Field("problem").find("is of another dataset of that name") != std::string::npos;
  })) << world.Do("status", "events").dump(1);
  EXPECT_NE(server.Run("SELECT row_key FROM mod00003.events").find("theirs"), std::string::npos);
  server.Run("DROP TABLE mod00003.events");
  world.Await("events", "ready");
  world.Do("cancel", "events");
  world.Await("events", "aborted");
}

TEST_F(CrossingTest, AMigrationThatWasNeverStartedGoesWithItsDataset) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  world.Do("create", "events", To("mysql"));
  // As it was possible, and still is by hand.
  ASSERT_OK(world.router().WithCatalog([&](Catalog& catalog) {
    auto contents = *catalog.Load();
    CatalogEntry entry = contents.entries.at(0);
    entry.spec.incarnation += 1;
    return catalog.Put(entry, contents.version).status();
  }));
  Open();
  world_->Do("create", "events", To("mysql"));
  world_->Do("cancel", "events");
  world_->Await("events", "aborted");
  ASSERT_OK(world_->router().WithCatalog(
      [&](Catalog& catalog) { return catalog.Remove("events", catalog.Load()->version).status(); }));
}

TEST_F(CrossingTest, ACancelOfAMigrationWhoseDatasetIsGoneForgetsIt) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  world.Do("create", "events", To("mysql"));
  ASSERT_OK(world.router().WithCatalog(
      [&](Catalog& catalog) { return catalog.Remove("events", catalog.Load()->version).status(); }));
  world.Do("cancel", "events");
  EXPECT_TRUE(Eventually([&] {
    const std::string phase = world.PhaseOf("events");
    return phase == "aborted" || phase == "none";
  }));
}

TEST_F(CrossingTest, ARecordThatIsAnotherMigrationsIsNotRemoved) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  world.Do("create", "events", To("mysql"));
  ASSERT_OK(world.router().WithCatalog([&](Catalog& catalog) -> absl::Status {
    const auto first = catalog.GetRecord("events");
    EXPECT_OK(first);
    EXPECT_OK(catalog.RemoveRecord("events", first->version));
    const auto next = catalog.PutRecord("events", first->text, -1);
    EXPECT_OK(next);
    // A worker of the first one wakes up.
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
