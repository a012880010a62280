#include "tests/migration/crossing_fixture.h"

/// Hosts that come back with less than they had, in the middle of a migration.
namespace kvstore::testing {
namespace {

TEST_F(CrossingTest, WhatTheTruthMayHaveLostIsNotTakenFromTheCopy) {
  World& world = OpenCrossed("before", 100);
  PutMany("after", 20);
  // Both sides are the same by now; a promoted replica has less.
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  world.Do("pause", "events");
  Lose("before04");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); })) << world.Do("status", "events").dump(1);
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("10 of them are on 'rocksdb' only"));
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("row 'before04"));
  EXPECT_EQ(world.Do("status", "events")["repaired"], 0);
  EXPECT_EQ(world.Do("status", "events")["next"], (Json{"resolve", "verify"}));
  // It serves meanwhile.
  Put("meanwhile");
  for (const char* command : {"finish", "reverse", "rollback", "cancel"}) {
    EXPECT_THAT(world.Try(command, "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "resolve"));
  }
  EXPECT_THAT(world.Try("resolve", "events", {{"keep", "neither"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "neither 'rocksdb' nor 'mysql'"));
  // Also a process that comes after this one asks.
  Open().migrator().TakeOverAbandoned();
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  world_->Do("resolve", "events", {{"keep", "rocksdb"}});
  world_->Await("events", "ready");
  EXPECT_EQ(world_->BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("before", 100), 100) << "the only copy of what was acknowledged";
  EXPECT_EQ(Count("after", 20), 20);
  EXPECT_EQ(world_->router().GetRow("events", "meanwhile", {})->items.size(), 1u);
  // The other side is made like it before anything else is possible.
  EXPECT_TRUE(Eventually([&] { return world_->Try("cutover", "events").ok(); }));
  world_->Await("events", "reversible");
  EXPECT_EQ(Count("before", 100), 100) << "the next cutover goes to a side that has all";
  EXPECT_EQ(Field("doubt"), "");
}

/// What an operator has said is right was to serve, and could not.
TEST_F(CrossingTest, AWayBackThatIsGivenUpAsksAgain) {
  World& world = OpenCrossed("before", 50);
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  world.Do("pause", "events");
  Lose("before02");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  // mysql, which serves, cannot be frozen.
  faults_.broken = EndpointState::kFrozen;
  faults_.broken_enters = 1;
  world.Do("resolve", "events", {{"keep", "rocksdb"}});
  EXPECT_TRUE(Eventually([&] { return faults_.broken_enters == 0 && !Field("doubt").empty(); }))
      << world.Do("status", "events").dump(1);
  EXPECT_THAT(world.Try("finish", "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "resolve"));
  world.Do("resolve", "events", {{"keep", "rocksdb"}});
  EXPECT_TRUE(Eventually([&] { return world.BackendOf("events") == "rocksdb"; }));
  EXPECT_EQ(Count("before", 50), 50);
}

TEST_F(CrossingTest, ASideThatAnswersAgainIsNotGivenUp) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 10);
  world.Do("create", "events", To("rocksdb"));
  world.Do("start", "events");
  world.Await("events", "ready");
  faults_.down = true;
  // It is back before the worker gets to it.
  SetFailPointHook([&](std::string_view point) {
    if (point == "abandon.begin") faults_.down = false;
  });
  world.Do("abandon", "events", {{"gone", "mysql"}});
  world.Await("events", "ready");
  EXPECT_TRUE(Eventually([&] {
    return world.Do("status", "events")["events"].dump().find("answers again, and is not given up") !=
           std::string::npos;
  }));
  Put("more");
  world.Do("cutover", "events");
  world.Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 10);
}

/// A rollback whose target's host is lost, and comes back as it was before the rollback.
TEST_F(CrossingTest, ATargetThatComesBackServingIsRemovedAllTheSame) {
  World& world = OpenCrossed("row", 10);
  SetFailPointHook([&](std::string_view point) {
    if (point == "abort.plain") faults_.down = true;
  });
  world.Do("rollback", "events");
  EXPECT_TRUE(Eventually([&] { return faults_.down.load() && !Field("problem").empty(); }));
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run(fmt::format(
        "RENAME TABLE `mod{0:05}`.`events$away` TO `mod{0:05}`.`events`; UPDATE `mod{0:05}`.`events$state` "
        "SET state = 2",
        shard));
  }
  SetFailPointHook(nullptr);
  ++faults_.restarts;
  faults_.down = false;
  world.Await("events", "aborted");
  EXPECT_EQ(TablesLeft(), (std::set<std::string>{}));
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(CrossingTest, AnOperatorMayKeepWhatServes) {
  World& world = OpenCrossed("before", 50);
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  world.Do("pause", "events");
  Lose("before01");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  world.Do("resolve", "events", {{"keep", "mysql"}});
  world.Await("events", "reversible");
  EXPECT_EQ(world.Do("status", "events")["repaired"], 10);
  world.Do("rollback", "events");
  world.Await("events", "aborted");
  EXPECT_EQ(Count("before", 50), 40);
}

TEST_F(CrossingTest, ARestartThatLostNothingAsksNobody) {
  World& world = OpenCrossed("row", 50);
  const int passes = world.Do("status", "events")["verify_passes"];
  ++faults_.restarts;
  EXPECT_TRUE(Eventually([&] { return world.Do("status", "events")["verify_passes"] > passes; }));
  world.Await("events", "reversible");
  EXPECT_EQ(Field("doubt"), "");
  world.Do("reverse", "events");
  world.Await("events", "ready");
  EXPECT_EQ(Count("row", 50), 50);
}

/// The source comes back as it was before the cutover: it serves, beside the target.
TEST_F(CrossingTest, ASourceThatForgotThatItMovedIsShut) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 50);
  world.Do("create", "events", To("rocksdb"));
  world.Do("start", "events");
  world.Await("events", "ready");
  world.Do("cutover", "events");
  world.Await("events", "reversible");
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  const auto stale = [](const std::string& sql) {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      SharedFleet().OfShard(shard).Run(
          fmt::format(fmt::runtime(sql), fmt::arg("db", fmt::format("mod{:05}", shard))));
    }
  };
  stale("RENAME TABLE `{db}`.`events$away` TO `{db}`.`events`; UPDATE `{db}`.`events$state` SET state = 2");
  ++faults_.restarts;
  const auto is_shut = [&] {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      const std::string tables = SharedFleet().OfShard(shard).Run(fmt::format(
          "SHOW TABLES FROM `mod{0:05}` LIKE 'events'; SELECT state FROM `mod{0:05}`.`events$state`", shard));
      if (tables.find("4") == std::string::npos || tables.find("events\n") != std::string::npos) return false;
    }
    return true;
  };
  EXPECT_TRUE(Eventually(is_shut));
  world.Await("events", "reversible");
  Put("row-after");
  world.Do("reverse", "events");
  world.Await("events", "ready");
  EXPECT_EQ(Count("row", 50), 50);
  EXPECT_EQ(world.router().GetRow("events", "row-after", {})->items.size(), 1u);
}

TEST_F(CrossingTest, WhatWasWrittenToASourceThatForgotIsShown) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 20);
  world.Do("create", "events", To("rocksdb"));
  world.Do("start", "events");
  world.Await("events", "ready");
  world.Do("cutover", "events");
  world.Await("events", "reversible");
  ASSERT_TRUE(Eventually([&] { return world.Do("status", "events")["lag"]["units"] == 0; }));
  // Nobody looks while the host is back and clients write to it.
  world_.reset();
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run(
        fmt::format("RENAME TABLE `mod{0:05}`.`events$away` TO `mod{0:05}`.`events`; UPDATE "
                    "`mod{0:05}`.`events$state` SET state "
                    "= 2; INSERT INTO `mod{0:05}`.`events` VALUES ('astray', 'c', 1, 'v')",
                    shard));
  }
  ++faults_.restarts;
  Open().migrator().TakeOverAbandoned();
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); })) << world_->Do("status", "events").dump(1);
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("'mysql' came back as it was before the cutover"));
  world_->Do("resolve", "events", {{"keep", "rocksdb"}});
  world_->Await("events", "reversible");
  EXPECT_EQ(Count("row", 20), 20);
}

}  // namespace
}  // namespace kvstore::testing
