#include <chrono>
#include <vector>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"
#include "tests/migration/crossing_fixture.h"

/// kv migrate repair, on real sides.
namespace kvstore::testing {
namespace {

class RepairTest : public FaultyMySqlTest {
 protected:
  Json Look() { return store_->Do("repair", "events"); }
  /// Repairs, and returns the names of the steps that were taken.
  std::vector<std::string> Mend() {
    const Json answer = store_->Do("repair", "events", {{"yes", true}});
    EXPECT_EQ(answer["done"], true) << answer.dump(1);
    std::vector<std::string> steps;
    for (const Json& step : answer["steps"]) steps.push_back(step["step"]);
    return steps;
  }
  std::string Record() {
    std::string text;
    EXPECT_OK(store_->router().keeper().WithCatalog([&](Catalog& catalog) {
      const auto record = catalog.GetRecord("events");
      if (record.ok()) text = record->text;
      return record.status();
    }));
    return text;
  }
  /// Opens the store without its worker, and replaces the record; empty: removes it.
  void ReopenWith(const std::string& record) {
    Open();
    EXPECT_OK(store_->router().keeper().WithCatalog([&](Catalog& catalog) {
      const auto there = catalog.GetRecord("events");
      if (!there.ok()) return there.status();
      if (record.empty()) return catalog.RemoveRecord("events", there->version);
      return catalog.PutRecord("events", record, there->version).status();
    }));
  }
  /// Cuts over, and brings ZooKeeper back as it was before.
  void OpenWithWhatWasBeforeTheCutover() {
    MigratingStore& store = OpenReady();
    const std::string before = Record();
    store.Do("cutover", "events");
    store.Await("events", "reversible");
    PutMany("later", 20);
    ReopenWith(before);
    EXPECT_OK(store_->router().keeper().WithCatalog([&](Catalog& catalog) {
      auto contents = catalog.Load();
      if (!contents.ok()) return contents.status();
      for (CatalogEntry& entry : contents->entries) {
        if (entry.spec.name != "events") continue;
        std::swap(entry.spec.backend, entry.other_backend);
        std::swap(entry.spec.engine, entry.other_engine);
        return catalog.Put(entry, contents->version).status();
      }
      return absl::NotFoundError("events");
    }));
  }
};

TEST_F(RepairTest, SaysThatNothingIsWrong) {
  OpenReady();
  const Json answer = Look();
  EXPECT_TRUE(answer["findings"].empty() && answer["steps"].empty() && answer["decisions"].empty())
      << answer.dump(1);
  EXPECT_EQ(answer["truth"], "rocksdb");
  EXPECT_EQ(answer["worker"], "here");
  EXPECT_EQ(answer["target"]["partitions"], Json({{"importing", TestFleet::kShards}}));
  EXPECT_THAT(store_->Try("repair", "another"), FailsWith(absl::StatusCode::kNotFound, "does not migrate"));
}

TEST_F(RepairTest, LetsAWorkerGoOnWhereOneHasDied) {
  OpenCrossed("row", 20);
  Open();
  EXPECT_EQ(Look()["worker"], "none");
  EXPECT_EQ(Look()["done"], false);
  EXPECT_EQ(Mend(), std::vector<std::string>{"resume"});
  EXPECT_TRUE(Eventually([&] { return Look()["findings"].empty(); })) << Look().dump(1);
  EXPECT_EQ(Count("row", 20), 20);
}

/// A repair waits for hosts that hang. Other migrations must not wait for it.
TEST_F(RepairTest, HoldsUpNoCommandOnAnotherDataset) {
  OpenCrossed("row", 20);
  Open();
  ASSERT_OK(store_->router().CreateDataset({.name = "other"}));
  std::vector<absl::Status> told;
  SetFailPointHook([&](std::string_view point) {
    if (point != "repair.begun") return;
    const CallScope scope(std::chrono::seconds(10));
    told.push_back(store_->Try("create", "other", To("mysql")).status());
    told.push_back(store_->Try("start", "other").status());
    const CallScope shorter(std::chrono::milliseconds(1));
    told.push_back(store_->Try("resume", "events").status());
  });
  EXPECT_EQ(Mend(), std::vector<std::string>{"resume"});
  SetFailPointHook(nullptr);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_OK(told[0]);
  EXPECT_OK(told[1]);
  EXPECT_THAT(told[2], FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  store_->Await("other", "ready");
}

TEST_F(RepairTest, MakesALostRecordAnewBeforeTheCutover) {
  OpenReady();
  ReopenWith("");
  EXPECT_THAT(store_->Try("status", "events"), FailsWith(absl::StatusCode::kNotFound, "does not migrate"));
  EXPECT_THAT(store_->Try("create", "events", To("mysql")),
              FailsWith(absl::StatusCode::kAlreadyExists, "migrates already"));
  Put("row010");
  EXPECT_EQ(Mend(), (std::vector<std::string>{"rebuild_record", "resume"}));
  store_->Await("events", "ready");
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(Count("row", 11), 11);
}

TEST_F(RepairTest, MakesALostRecordAnewAfterTheCutover) {
  OpenCrossed("row", 20);
  ReopenWith("");
  PutMany("later", 20);
  EXPECT_EQ(Mend(), (std::vector<std::string>{"rebuild_record", "resume"}));
  // Writes meanwhile were recorded, so that both sides are the same but for them.
  store_->Await("events", "reversible");
  ASSERT_TRUE(Eventually([&] { return store_->Do("status", "events")["lag"]["units"] == 0; }));
  store_->Do("reverse", "events");
  store_->Await("events", "ready");
  EXPECT_EQ(store_->BackendOf("events"), "rocksdb");
  EXPECT_EQ(Count("row", 20), 20);
  EXPECT_EQ(Count("later", 20), 20);
}

/// A request of an operator that comes while both sides are asked is in no record that was diagnosed.
TEST_F(RepairTest, ChangesNoRecordThatItHasNotSeen) {
  OpenWithWhatWasBeforeTheCutover();
  const std::string before = Record();
  bool begun = false;
  bool stored = false;
  SetFailPointHook([&](std::string_view point) {
    if (point == "repair.begun") begun = true;
    if (point != "repair.asked" || !begun || stored) return;
    stored = true;
    EXPECT_OK(store_->router().keeper().WithCatalog([&](Catalog& catalog) {
      const auto there = catalog.GetRecord("events");
      if (!there.ok()) return there.status();
      return catalog.PutRecord("events", there->text, there->version).status();
    }));
  });
  const auto refused = store_->Try("repair", "events", {{"yes", true}});
  SetFailPointHook(nullptr);
  EXPECT_TRUE(stored);
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kAborted, "was changed while it was examined"));
  EXPECT_EQ(Record(), before);
  EXPECT_EQ(Mend(), (std::vector<std::string>{"turn_record", "route_catalog", "resume"}));
}

/// ZooKeeper comes back as it was before the cutover.
TEST_F(RepairTest, TurnsARecordAndACatalogThatComeFromABackup) {
  OpenWithWhatWasBeforeTheCutover();
  const Json answer = Look();
  EXPECT_EQ(answer["truth"], "mysql") << answer.dump(1);
  EXPECT_THAT(answer["findings"].dump(),
              ::testing::HasSubstr("the record is older than what both sides have"));
  EXPECT_EQ(Mend(), (std::vector<std::string>{"turn_record", "route_catalog", "resume"}));
  store_->Await("events", "reversible");
  EXPECT_EQ(store_->BackendOf("events"), "mysql");
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(Count("later", 20), 20);
  EXPECT_EQ(Field("doubt"), "");
}

/// The record of a migration that has ended comes back, and would remove the only copy.
TEST_F(RepairTest, ARecordOfAMigrationThatHasEndedRemovesNothing) {
  OpenCrossed("row", 10);
  auto old = migration::Decode(Record());
  ASSERT_OK(old);
  old->phase = migration::Phase::kFinishing;
  store_->Do("finish", "events");
  store_->Await("events", "finished");
  store_->Do("create", "events", To("rocksdb"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  store_->Do("finish", "events");
  store_->Await("events", "finished");
  Put("late000");
  Open();
  EXPECT_OK(store_->router().keeper().WithCatalog(
      [&](Catalog& catalog) { return catalog.PutRecord("events", migration::Encode(*old), -1).status(); }));
  const Json answer = store_->Do("repair", "events", {{"yes", true}});
  EXPECT_EQ(answer["done"], false) << answer.dump(1);
  EXPECT_THAT(answer["findings"].dump(), ::testing::HasSubstr("is to be removed, serves"));
  // A server resumes it by itself.
  store_->Try("resume", "events").IgnoreError();
  EXPECT_TRUE(Eventually([&] { return Field("problem").find("does not fit") != std::string::npos; }));
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(Count("late", 1), 1);
}

/// A record from before a cutover comes back, while its sides are those of a later migration.
TEST_F(RepairTest, AnOldRecordIsResumedWithAComparison) {
  OpenReady();
  const std::string before = Record();
  store_->Do("pause", "events");
  ASSERT_TRUE(Eventually([&] { return store_->Do("status", "events")["lag"]["units"] == 0; }));
  // The next worker has a later epoch.
  Open();
  store_->Do("resume", "events");
  store_->Await("events", "ready");
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run(
        fmt::format("DELETE FROM `mod{:05}`.`events$away` WHERE row_key = 'row003'", shard));
  }
  ReopenWith(before);
  EXPECT_EQ(Mend(), (std::vector<std::string>{"compare_again", "resume"}));
  ASSERT_TRUE(Eventually([&] {
    const Json status = store_->Do("status", "events");
    return status["phase"] == "ready" && status["repaired"] == 1;
  })) << store_->Do("status", "events").dump(1);
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 10);
}

/// The same, where nobody asks for a repair, and the record is that of a cutover to a copy that is gone.
TEST_F(RepairTest, ACutoverIntoACopyThatIsGoneComparesFirst) {
  OpenReady();
  auto before = migration::Decode(Record());
  ASSERT_OK(before);
  before->phase = migration::Phase::kCutover;
  before->wanted = migration::Wanted::kCutover;
  store_->Do("cancel", "events");
  store_->Await("events", "aborted");
  Open();
  EXPECT_OK(store_->router().keeper().WithCatalog([&](Catalog& catalog) {
    return catalog.PutRecord("events", migration::Encode(*before), -1).status();
  }));
  store_->Do("resume", "events");
  EXPECT_TRUE(Eventually([&] { return store_->PhaseOf("events") == "reversible"; }))
      << store_->Do("status", "events").dump(1);
  EXPECT_EQ(Count("row", 10), 10);
}

/// Two repairs that were diagnosed on the same record: the second one changes nothing.
TEST_F(RepairTest, AStepIsTakenOnlyOnTheRecordThatWasExamined) {
  OpenReady();
  Open();
  absl::StatusOr<std::unique_ptr<migration::Migration>> first =
      migration::Migration::Open(store_->router().keeper(), "events");
  absl::StatusOr<std::unique_ptr<migration::Migration>> second =
      migration::Migration::Open(store_->router().keeper(), "events");
  ASSERT_OK(first);
  ASSERT_OK(second);
  const migration::Diagnosis turn{.steps = {{migration::RepairStep::kTurnRecord, "turn it"}},
                                  .on_target = true};
  EXPECT_OK((*first)->Mend(turn, 0, "test"));
  EXPECT_THAT((*second)->Mend(turn, 0, "test"), FailsWith(absl::StatusCode::kAborted, ""));
  // Nor does a command that was in flight overwrite it.
  EXPECT_THAT((*second)->Pause(true, "test"), FailsWith(absl::StatusCode::kAborted, ""));
  const auto now = migration::Decode(Record());
  ASSERT_OK(now);
  EXPECT_TRUE(now->on_target && !now->paused);
}

/// Somebody drops the triggers, so that a cutover would lose what is written then.
TEST_F(RepairTest, FindsAndMakesUpForALogThatWasLost) {
  MigratingStore& store = Open();
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  PutMany("row", 10);
  store.Do("create", "events", To("rocksdb"));
  store.Do("start", "events");
  store.Await("events", "ready");
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    SharedFleet().OfShard(shard).Run(
        fmt::format("DROP TRIGGER `mod{0:05}`.`events$ai`; DROP TRIGGER `mod{0:05}`.`events$au`; "
                    "DROP TRIGGER `mod{0:05}`.`events$ad`; UPDATE `mod{0:05}`.`events$state` SET capture = 0",
                    shard));
  }
  PutMany("unseen", 20);
  const Json answer = Look();
  EXPECT_THAT(answer["findings"].dump(), ::testing::HasSubstr("its dirty log is lost")) << answer.dump(1);
  EXPECT_EQ(Mend(), (std::vector<std::string>{"compare_again", "resume"}));
  ASSERT_TRUE(Eventually([&] {
    const Json status = store_->Do("status", "events");
    return status["phase"] == "ready" && status["repaired"] == 20;
  })) << store_->Do("status", "events").dump(1);
  EXPECT_TRUE(Eventually([&] { return Look()["findings"].empty(); })) << Look().dump(1);
  store.Do("cutover", "events");
  store.Await("events", "reversible");
  EXPECT_EQ(Count("row", 10), 10);
  EXPECT_EQ(Count("unseen", 20), 20);
}

TEST_F(RepairTest, LeavesToAPersonWhatItCannotKnow) {
  MigratingStore& store = OpenCrossed("before", 50);
  ASSERT_TRUE(Eventually([&] { return store.Do("status", "events")["lag"]["units"] == 0; }));
  store.Do("pause", "events");
  Lose("before01");
  ++faults_.restarts;
  ASSERT_TRUE(Eventually([&] { return !Field("doubt").empty(); }));
  Json answer = store.Do("repair", "events", {{"yes", true}});
  EXPECT_EQ(answer["done"], false);
  EXPECT_THAT(answer["decisions"].dump(), ::testing::HasSubstr("kv migrate resolve events --keep BACKEND"));
  faults_.down = true;
  answer = Look();
  EXPECT_EQ(answer["target"]["answers"], false);
  EXPECT_THAT(answer["findings"].dump(), ::testing::HasSubstr("'mysql' cannot be asked: mysql is down"));
  EXPECT_THAT(answer["decisions"].dump(), ::testing::HasSubstr("kv migrate abandon events --gone mysql"));
  EXPECT_EQ(store.Do("repair", "events", {{"yes", true}})["done"], false);
  faults_.down = false;
}

}  // namespace
}  // namespace kvstore::testing
