#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/fail_point.h"
#include "tests/migration/forward.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"

/// What crosses a migration: shards that are opened, hosts that come back with less than they had, sides that
/// do not come back at all, steps that are cut off half way, datasets that go.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

/// Which endpoints fail, and what their hosts say of themselves. Of the test, which outlives the endpoints.
struct Faults {
  std::atomic<bool> down{false};      ///< Of MySQL: nothing answers.
  std::atomic<int> restarts{0};       ///< Of MySQL: another boot after each.
  std::atomic<int> broken_enters{0};  ///< So many sweeps to `broken` of MySQL fail, behind their first shard.
  std::atomic<EndpointState> broken{EndpointState::kMoved};
  std::atomic<int> aborted{
      0};  ///< So many times RocksDB says that another worker has taken over, which is not so.
};

/// The endpoint of MySQL, in trouble.
class Troubled : public Forward {
 public:
  Troubled(std::unique_ptr<MigrationEndpoint> wrapped, Faults& faults)
      : Forward(std::move(wrapped)), faults_(faults) {}
  absl::StatusOr<EndpointStatus> Status() override {
    if (faults_.down) return Down();
    return inner->Status();
  }
  absl::StatusOr<std::string> Boot() override {
    if (faults_.down) return Down();
    auto boot = inner->Boot();
    if (boot.ok()) *boot += fmt::format(" restarted {}", faults_.restarts.load());
    return boot;
  }
  absl::Status RaiseEpoch(uint64_t epoch) override {
    return faults_.down ? Down() : inner->RaiseEpoch(epoch);
  }
  absl::Status Enter(uint64_t epoch, EndpointState state, bool capture) override {
    if (faults_.down) return Down();
    if (state == faults_.broken && faults_.broken_enters > 0) {
      --faults_.broken_enters;
      // A sweep that got to some of the shards only.
      if (auto status = inner->Limit("0-5"); !status.ok()) return status;
      if (auto status = inner->Enter(epoch, state, capture); !status.ok()) return status;
      if (auto status = inner->Limit("0-15"); !status.ok()) return status;
      return absl::UnavailableError("shard mod00006 at somewhere: was cut off");
    }
    return inner->Enter(epoch, state, capture);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    return faults_.down ? Down() : inner->Replace(epoch, units, fresh);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    if (faults_.down) return Down();
    return inner->ReadDirty(limit);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    if (faults_.down) return Down();
    return inner->Read(keys, as_of);
  }

 private:
  static absl::Status Down() { return absl::UnavailableError("mysql is down"); }
  Faults& faults_;
};

/// A map of all shards of one server: the first `open`.
void OpenShards(uint32_t open) {
  for (const char* name : {"id.json", "mod.json"}) {
    if (std::string_view(name) == "mod.json" && open < TestFleet::kShards) continue;
    const auto path = SharedFleet().Map(name);
    std::ofstream(path.string() + ".next")
        << fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "none1"}}])", open - 1,
                       SharedFleet().server(0).address());
    std::filesystem::rename(path.string() + ".next", path);
  }
}

class CrossingTest : public ::testing::Test {
 protected:
  CrossingTest() { SharedFleet().Clear(); }
  ~CrossingTest() override { SetFailPointHook(nullptr); }

  World& Open() {
    world_ = nullptr;
    world_ = std::make_unique<World>(
        dir_.path(),
        [this](std::unique_ptr<MigrationEndpoint> endpoint) -> std::unique_ptr<MigrationEndpoint> {
          // The embedded store's partitions are always the same.
          if (endpoint->Extent().value_or("").empty()) return endpoint;
          return std::make_unique<Troubled>(std::move(endpoint), faults_);
        });
    return *world_;
  }
  void Put(const std::string& row, const std::string& value = "v") {
    const CellWrite cell{"c", value, std::nullopt};
    ASSERT_OK(world_->router().PutRow("events", row, {&cell, 1}, {})) << row;
  }
  void PutMany(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) Put(fmt::format("{}{:03}", prefix, i));
  }
  int Count(const std::string& prefix, int count) {
    int there = 0;
    for (int i = 0; i < count; ++i) {
      const auto row = world_->router().GetRow("events", fmt::format("{}{:03}", prefix, i), {});
      EXPECT_OK(row);
      there += row.ok() && !row->items.empty() ? 1 : 0;
    }
    return there;
  }
  /// From rocksdb to mysql, and cut over.
  void Cross() {
    world_->Do("create", "events", To("mysql"));
    world_->Do("start", "events");
    world_->Await("events", "ready");
    world_->Do("cutover", "events");
    world_->Await("events", "reversible");
  }
  /// Tables of the dataset on the fleet.
  static std::set<std::string> TablesLeft() {
    std::set<std::string> found;
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      const std::string names =
          SharedFleet().OfShard(shard).Run(fmt::format("SELECT table_name FROM information_schema.tables "
                                                       "WHERE table_schema = 'mod{:05}' AND table_name LIKE "
                                                       "'events%'",
                                                       shard));
      if (!names.empty()) found.insert(names);
    }
    return found;
  }
  std::string Field(const char* field) { return world_->Do("status", "events").value(field, ""); }
  /// As a lossy replica would, while nothing is drained: rows, and what the log has of them.
  static void Lose(const std::string& prefix) {
    for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
      // In one transaction: a drain that is still under way sees nothing of it.
      SharedFleet().OfShard(shard).Run(
          fmt::format("START TRANSACTION; DELETE FROM `mod{0:05}`.`events` WHERE row_key LIKE '{1}%'; "
                      "DELETE FROM `mod{0:05}`.`events$dirty` WHERE k1 LIKE '{1}%'; COMMIT",
                      shard, prefix));
    }
  }

  const TempDir dir_;
  Faults faults_;
  std::unique_ptr<World> world_;
};

// ---- shards that are opened meanwhile ----

class ShardsOpenedTest : public CrossingTest {
 protected:
  ShardsOpenedTest() { OpenShards(4); }
  ~ShardsOpenedTest() override {
    world_.reset();
    SharedFleet().WriteMaps(SharedFleet().server(0).address(), SharedFleet().server(1).address());
  }
  /// Gives a command as soon as both sides were compared again.
  void DoWhenCompared(const std::string& command) {
    EXPECT_TRUE(Eventually([&] { return world_->Try(command, "events").ok(); }))
        << world_->Do("status", "events").dump(1);
  }
  /// `count` more entries, of IDs of the first shards.
  void Add(uint64_t from, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(
          world_->router().AddMapping("events", from << 46 | 1 << 10 | 7, static_cast<uint64_t>(i) + 1, i));
    }
  }
  uint64_t CountOf(uint64_t from) {
    return world_->router().CountMapping("events", from << 46 | 1 << 10 | 7).value_or(0);
  }
  void AwaitShards(uint32_t open) {
    OpenShards(open);
    // As kv shards init does.
    auto backend = SharedFleet().OpenAsMapped();
    ASSERT_OK(backend);
    ASSERT_OK((*backend)->Init({}, nullptr));
    ASSERT_TRUE(Eventually([&] {
      const auto shards = world_->router().FindBackend("mysql");
      return (*shards)
                 ->OpenForMigration({.name = "events", .shape = Shape::kMappings, .backend = "mysql"})
                 .value()
                 ->Extent()
                 .value() == fmt::format("0-{}", open - 1);
    }));
  }
};

TEST_F(ShardsOpenedTest, BetweenReadyAndCutoverTheyAreTakenIn) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .shape = Shape::kMappings}));
  Add(0, 20);
  Add(3, 20);
  world.Do("create", "events", To("mysql"));
  world.Do("start", "events");
  world.Await("events", "ready");
  AwaitShards(8);
  DoWhenCompared("cutover");
  world.Await("events", "reversible");
  EXPECT_EQ(world.BackendOf("events"), "mysql");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(3), 20u);
  // Writes to the new shards are captured like those of the others: the way back has them.
  Add(5, 10);
  AwaitShards(12);
  EXPECT_TRUE(Eventually([&] {
    return world.router().AddMapping("events", uint64_t{9} << 46 | 1 << 10 | 7, 1, 1).ok();
  })) << "the worker makes it on the shards that were opened last";
  DoWhenCompared("reverse");
  world.Await("events", "ready");
  EXPECT_EQ(world.BackendOf("events"), "rocksdb");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(5), 10u);
  EXPECT_EQ(CountOf(9), 1u);
  // And a side that has moved takes new shards in, too.
  AwaitShards(16);
  Add(14, 3);
  DoWhenCompared("cutover");
  world.Await("events", "reversible");
  EXPECT_EQ(CountOf(14), 3u);
  EXPECT_EQ(CountOf(5), 10u);
  world.Do("finish", "events");
  world.Await("events", "finished");
  EXPECT_EQ(CountOf(9), 1u);
}

/// The embedded store would spread objects over more shards than the servers have.
TEST_F(ShardsOpenedTest, ObjectsThatAreMadeOnTheOtherSideFindTheirWayBack) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .shape = Shape::kObjects, .backend = "mysql"}));
  std::set<uint64_t> ids;
  const auto make = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto id = world.router().CreateObject("events", R"({"a": 1})", {});
      ASSERT_OK(id);
      EXPECT_TRUE(ids.insert(*id).second) << *id << " is given twice";
    }
  };
  make(40);
  world.Do("create", "events", To("rocksdb"));
  world.Do("start", "events");
  world.Await("events", "ready");
  world.Do("cutover", "events");
  world.Await("events", "reversible");
  make(40);
  world.Do("rollback", "events");
  world.Await("events", "aborted");
  make(10);
  for (const uint64_t id : ids) EXPECT_OK(world.router().GetObject("events", id, {})) << id;
}

TEST_F(ShardsOpenedTest, InTheMiddleOfACutoverTheyWait) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events", .shape = Shape::kMappings}));
  Add(0, 20);
  world.Do("create", "events", To("mysql"));
  world.Do("start", "events");
  world.Await("events", "ready");
  std::atomic<bool> opened{false};
  SetFailPointHook([&](std::string_view point) {
    if (point == "cutover.frozen" && !opened.exchange(true)) AwaitShards(8);
  });
  world.Do("cutover", "events", {});
  // It may have taken longer than writes may be held: then it was given up, and is asked for again.
  EXPECT_TRUE(Eventually([&] {
    if (world.PhaseOf("events") == "ready") world.Try("cutover", "events").IgnoreError();
    return world.PhaseOf("events") == "reversible";
  }));
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_TRUE(Eventually(
      [&] { return world.router().AddMapping("events", uint64_t{6} << 46 | 1 << 10 | 7, 1, 1).ok(); }));
  world.Do("rollback", "events");
  world.Await("events", "aborted");
  EXPECT_EQ(CountOf(0), 20u);
  EXPECT_EQ(CountOf(6), 1u);
}

// ---- hosts that come back with less than they had ----

TEST_F(CrossingTest, WhatTheTruthMayHaveLostIsNotTakenFromTheCopy) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("before", 100);
  Cross();
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("before", 50);
  Cross();
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  Cross();
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("before", 50);
  Cross();
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 50);
  Cross();
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

// ---- sides that do not come back ----

TEST_F(CrossingTest, WritesAreLetGoWhileTheTargetIsDown) {
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  world.Do("create", "events", To("mysql"));
  world.Do("start", "events");
  world.Await("events", "ready");
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  world.Do("create", "events", To("mysql"));
  world.Do("start", "events");
  world.Await("events", "ready");
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  Cross();
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
  World& world = Open();
  ASSERT_OK(world.router().CreateDataset({.name = "events"}));
  PutMany("row", 10);
  world.Do("create", "events", {{"target", "mysql"}, {"share", 100}, {"freeze_ms", 1000}});
  world.Do("start", "events");
  world.Await("events", "ready");
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
