#include "tests/migration/crossing_fixture.h"

/// Hosts that come back with older data in the middle of a migration.
namespace kvstore::testing {
namespace {

TEST_F(FaultyMySqlTest, WhatTheTruthMayHaveLostIsNotTakenFromTheCopy) {
  MigratingStore& store = OpenCrossed("before", 100);
  PutMany("after", 20);
  // Both sides are the same by now; then a replica with less data is promoted.
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  store.Do("pause", "events");
  Lose("before04");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); })) << store.Do("status", "events").dump(1);
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("10 of them are on 'rocksdb' only"));
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("row 'before04"));
  EXPECT_EQ(store.Do("status", "events")["repaired"], 0);
  EXPECT_EQ(store.Do("status", "events")["next"], (Json{"resolve", "verify"}));
  // The side goes on serving meanwhile.
  Put("meanwhile");
  for (const char* command : {"finish", "reverse", "rollback", "cancel"}) {
    EXPECT_THAT(store.Try(command, "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "resolve"));
  }
  EXPECT_THAT(store.Try("resolve", "events", {{"keep", "neither"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "neither 'rocksdb' nor 'mysql'"));
  // A process that takes over reports the doubt as well.
  Open().migrator().TakeOverAbandoned();
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  store_->Do("resolve", "events", {{"keep", "rocksdb"}});
  store_->Await("events", "ready");
  EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("before", 100), 100) << "the only copy of what was acknowledged";
  EXPECT_EQ(Count("after", 20), 20);
  EXPECT_EQ(store_->router().GetRow("events", "meanwhile", {})->items.size(), 1u);
  // The other side must be repaired before anything else is possible.
  EXPECT_TRUE(Eventually([&] { return store_->Try("cutover", "events").ok(); }));
  store_->Await("events", "reversible");
  EXPECT_EQ(Count("before", 100), 100) << "the next cutover goes to a side that has all";
  EXPECT_EQ(Field("doubt"), "");
}

/// MySQL serves again, after the other side has: both have all that was acknowledged.
class WayBackTest : public FaultyMySqlTest {
 protected:
  MigratingStore& OpenReversed(int rows) {
    MigratingStore& store = Open();
    EXPECT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
    PutMany("row", rows);
    store.Do("create", "events", To("rocksdb"));
    store.Do("start", "events");
    store.Await("events", "ready");
    store.Do("cutover", "events");
    store.Await("events", "reversible");
    store.Do("reverse", "events");
    store.Await("events", "ready");
    EXPECT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
    return store;
  }
};

TEST_F(WayBackTest, ACancelRemovesNothingThatTheTruthMayHaveLost) {
  MigratingStore& store = OpenReversed(50);
  store.Do("pause", "events");
  Lose("row02");
  ++faults_.restarts;
  store.Do("cancel", "events");
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); })) << store.Do("status", "events").dump(1);
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("10 of them are on 'rocksdb' only"));
  EXPECT_THAT(store.Try("cancel", "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "resolve"));
  store.Do("resolve", "events", {{"keep", "rocksdb"}});
  EXPECT_TRUE(Eventually([&] { return store.BackendOf("events") == "rocksdb"; }));
  EXPECT_EQ(Count("row", 50), 50);
}

TEST_F(WayBackTest, ACancelGoesOnWhenBothSidesWereFoundTheSame) {
  MigratingStore& store = OpenReversed(10);
  ++faults_.restarts;
  store.Do("cancel", "events");
  store.Await("events", "aborted");
  EXPECT_THAT(Field("doubt"), "");
  EXPECT_EQ(store.BackendOf("events"), "mysql");
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(WayBackTest, ACancelThatBeganComparesIfTheTruthMayHaveLostSomething) {
  MigratingStore& store = OpenReversed(10);
  SetFailPointHook([&, restarted = false](std::string_view point) mutable {
    if (point == "abort.begin" && !std::exchange(restarted, true)) ++faults_.restarts;
  });
  store.Do("cancel", "events");
  ASSERT_TRUE(Eventually([&] {
    return store.Do("status", "events")["events"].dump().find("compared before the target is removed") !=
           std::string::npos;
  }));
  // Then it goes on.
  store.Await("events", "aborted");
  EXPECT_EQ(store.BackendOf("events"), "mysql");
  EXPECT_EQ(Count("row", 10), 10);
}

/// The side that an operator has declared right cannot begin to serve.
TEST_F(FaultyMySqlTest, AWayBackThatIsGivenUpAsksAgain) {
  MigratingStore& store = OpenCrossed("before", 50);
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  store.Do("pause", "events");
  Lose("before02");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  // mysql, which serves, cannot be frozen.
  faults_.broken = EndpointState::kFrozen;
  faults_.failing_transitions = 1;
  store.Do("resolve", "events", {{"keep", "rocksdb"}});
  EXPECT_TRUE(Eventually([&] { return faults_.failing_transitions == 0 && !Field("doubt").empty(); }))
      << store.Do("status", "events").dump(1);
  EXPECT_THAT(store.Try("finish", "events"), FailsWith(absl::StatusCode::kFailedPrecondition, "resolve"));
  store.Do("resolve", "events", {{"keep", "rocksdb"}});
  EXPECT_TRUE(Eventually([&] { return store.BackendOf("events") == "rocksdb"; }));
  EXPECT_EQ(Count("before", 50), 50);
}

TEST_F(FaultyMySqlTest, ASideThatAnswersAgainIsNotGivenUp) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 10);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  faults_.down = true;
  // The side is back before the worker notices.
  SetFailPointHook([&](std::string_view point) {
    if (point == "abandon.begin") faults_.down = false;
  });
  store.Do("abandon", "events", {{"gone", "mysql"}});
  store.Await("events", "ready");
  EXPECT_TRUE(Eventually([&] {
    return store.Do("status", "events")["events"].dump().find("answers again, and is not given up") !=
           std::string::npos;
  }));
  // By this `abandon --wait` ends with the exit code of a failure.
  EXPECT_EQ(Field("problem"), "'mysql' answers again, and is not given up");
  Put("more");
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(FaultyMySqlTest, ASideThatBecomesTheTruthMeanwhileIsNotGivenUp) {
  MigratingStore& store = OpenReady();
  std::atomic<bool> asked{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "cutover.moved" || asked.exchange(true)) return;
    // The target does not answer for a moment, in which an operator gives it up.
    faults_.down = true;
    EXPECT_OK(store.Try("abandon", "events", {{"gone", "mysql"}}));
    faults_.down = false;
  });
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  EXPECT_TRUE(asked);
  EXPECT_EQ(store.BackendOf("events"), "mysql");
  EXPECT_EQ(Field("problem"), "'mysql' is the truth now, and is not given up");
  EXPECT_EQ(Field("wanted"), "nothing");
  Put("more");
  EXPECT_EQ(Count("row", 10), 10);
}

/// A rollback whose target's host is lost, and comes back as it was before the rollback.
TEST_F(FaultyMySqlTest, ATargetThatComesBackServingIsRemovedAllTheSame) {
  MigratingStore& store = OpenCrossed("row", 10);
  SetFailPointHook([&](std::string_view point) {
    if (point == "abort.plain") faults_.down = true;
  });
  store.Do("rollback", "events");
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
  store.Await("events", "aborted");
  EXPECT_EQ(TablesLeft(), (std::set<std::string>{}));
  EXPECT_EQ(Count("row", 10), 10);
}

TEST_F(FaultyMySqlTest, AnOperatorMayKeepWhatServes) {
  MigratingStore& store = OpenCrossed("before", 50);
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  store.Do("pause", "events");
  Lose("before01");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  store.Do("resolve", "events", {{"keep", "mysql"}});
  store.Await("events", "reversible");
  EXPECT_EQ(store.Do("status", "events")["repaired"], 10);
  store.Do("rollback", "events");
  store.Await("events", "aborted");
  EXPECT_EQ(Count("before", 50), 40);
}

TEST_F(FaultyMySqlTest, ARestartThatLostNothingAsksNobody) {
  MigratingStore& store = OpenCrossed("row", 50);
  const int passes = store.Do("status", "events")["verify_passes"];
  ++faults_.restarts;
  EXPECT_TRUE(Eventually([&] { return store.Do("status", "events")["verify_passes"] > passes; }));
  store.Await("events", "reversible");
  EXPECT_EQ(Field("doubt"), "");
  store.Do("reverse", "events");
  store.Await("events", "ready");
  EXPECT_EQ(Count("row", 50), 50);
}

/// The source comes back as it was before the cutover: it serves, beside the target.
TEST_F(FaultyMySqlTest, ASourceThatForgotThatItMovedIsShut) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 50);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
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
  store.Await("events", "reversible");
  Put("row-after");
  store.Do("reverse", "events");
  store.Await("events", "ready");
  EXPECT_EQ(Count("row", 50), 50);
  EXPECT_EQ(store.router().GetRow("events", "row-after", {})->items.size(), 1u);
}

TEST_F(FaultyMySqlTest, WhatWasWrittenToASourceThatForgotIsShown) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 20);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  // No worker runs while the host is back and clients write to it.
  store_.reset();
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run(
        fmt::format("RENAME TABLE `mod{0:05}`.`events$away` TO `mod{0:05}`.`events`; UPDATE "
                    "`mod{0:05}`.`events$state` SET state "
                    "= 2; INSERT INTO `mod{0:05}`.`events` VALUES ('astray', 'c', 1, 'v')",
                    shard));
  }
  ++faults_.restarts;
  Open().migrator().TakeOverAbandoned();
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); })) << store_->Do("status", "events").dump(1);
  EXPECT_THAT(Field("doubt"), ::testing::HasSubstr("'mysql' came back as it was before the cutover"));
  store_->Do("resolve", "events", {{"keep", "rocksdb"}});
  store_->Await("events", "reversible");
  EXPECT_EQ(Count("row", 20), 20);
}

}  // namespace
}  // namespace kvstore::testing
