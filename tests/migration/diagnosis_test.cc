#include "migration/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "migration/contradiction.h"

namespace kvstore::migration {
namespace {

using State = EndpointState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A migration from rocksdb to mysql in the phase ready, on which a worker of this process works.
RepairFacts Ready() {
  RepairFacts facts{.dataset = "events"};
  facts.record = {.dataset = "events",
                  .incarnation = 7,
                  .source = "rocksdb",
                  .target = "mysql",
                  .phase = Phase::kReady,
                  .epoch = 100,
                  .owner = "process 1"};
  facts.record.verified = "a|b";
  facts.entry.spec = {.name = "events", .backend = "rocksdb", .incarnation = 7};
  facts.entry.other_backend = "mysql";
  facts.runs_here = true;
  facts.source = {.backend = "rocksdb",
                  .status = {.partitions = {{State::kServing, 1}}, .capture = true, .epoch = 100},
                  .boot = "a"};
  facts.target = {
      .backend = "mysql", .status = {.partitions = {{State::kImporting, 16}}, .epoch = 100}, .boot = "b"};
  return facts;
}

/// The same after the cutover.
RepairFacts Crossed() {
  RepairFacts facts = Ready();
  facts.record.phase = Phase::kReversible;
  facts.record.on_target = facts.record.crossed = true;
  facts.entry.spec.backend = "mysql";
  facts.entry.other_backend = "rocksdb";
  facts.source.status = {.partitions = {{State::kMoved, 1}}, .capture = true, .epoch = 100};
  facts.target.status = {.partitions = {{State::kServing, 16}}, .capture = true, .epoch = 100};
  return facts;
}

void LoseRecord(RepairFacts& facts) {
  facts.record = {};
  facts.record_problem = absl::NotFoundError("none");
  facts.runs_here = false;
  if (facts.source.backend != facts.entry.spec.backend) std::swap(facts.source, facts.target);
}

std::vector<RepairStep> StepsOf(const Diagnosis& diagnosis) {
  std::vector<RepairStep> steps;
  for (const Diagnosis::Step& step : diagnosis.steps) steps.push_back(step.step);
  return steps;
}

std::string Found(const Diagnosis& diagnosis) {
  return fmt::format("{}", fmt::join(diagnosis.findings, "\n"));
}

TEST(Diagnosis, OfAMigrationThatIsWellHasNothing) {
  for (const RepairFacts& facts : {Ready(), Crossed()}) {
    const Diagnosis diagnosis = Diagnose(facts);
    EXPECT_THAT(diagnosis.findings, IsEmpty());
    EXPECT_THAT(diagnosis.steps, IsEmpty());
    EXPECT_THAT(diagnosis.decisions, IsEmpty());
    EXPECT_EQ(diagnosis.truth, facts.entry.spec.backend);
  }
}

TEST(Diagnosis, AWorkerThatIsGoneIsReplaced) {
  RepairFacts facts = Crossed();
  facts.runs_here = false;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kResume));
  facts.record.phase = Phase::kCutover;
  facts.source.status.partitions = {{State::kServing, 1}};
  diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("a cutover from 'mysql' to 'rocksdb' was cut short"));
  EXPECT_EQ(diagnosis.truth, "rocksdb") << "it was opened";
  facts.record.phase = Phase::kCreated;
  EXPECT_THAT(Diagnose(facts).steps, IsEmpty()) << "it was never started";
}

TEST(Diagnosis, ASideThatIsDownIsForAPerson) {
  RepairFacts facts = Ready();
  facts.target.problem = absl::UnavailableError("no route to host");
  const Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("'mysql' cannot be asked: no route to host"));
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  ASSERT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_EQ(diagnosis.decisions[0].command, "kv migrate abandon events --gone mysql");
}

TEST(Diagnosis, ADoubtIsForAPerson) {
  RepairFacts facts = Crossed();
  facts.record.doubt = "of 10 units 3 differ";
  const Diagnosis diagnosis = Diagnose(facts);
  ASSERT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_EQ(diagnosis.decisions[0].command, "kv migrate resolve events --keep BACKEND");
}

TEST(Diagnosis, ARecordFromABackupIsTurnedIfTheSidesAreClear) {
  RepairFacts facts = Crossed();
  facts.record = Ready().record;
  facts.record.epoch = 90;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("it knows of no cutover, and 'rocksdb' has moved"));
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kTurnRecord, RepairStep::kResume));
  EXPECT_EQ(diagnosis.truth, "mysql");
  EXPECT_TRUE(diagnosis.on_target);
  // The catalog is from the same backup.
  facts.entry = Ready().entry;
  diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis),
              ElementsAre(RepairStep::kTurnRecord, RepairStep::kRouteCatalog, RepairStep::kResume));
  // A record that knows of no cutover is older, too.
  facts.record.epoch = 100;
  EXPECT_TRUE(Diagnose(facts).Has(RepairStep::kTurnRecord));
  // Nothing says which one is older: the side may have come back as it was long ago.
  facts.record.crossed = true;
  diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  EXPECT_EQ(diagnosis.truth, "");
  ASSERT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_EQ(diagnosis.decisions[0].command, "kv migrate resume events");
}

TEST(Diagnosis, BothSidesServing) {
  RepairFacts facts = Crossed();
  facts.source.status.partitions = {{State::kServing, 1}};
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("'rocksdb' serves although"));
  EXPECT_THAT(diagnosis.decisions, IsEmpty()) << "the worker closes it";
  facts.record.epoch = 90;
  diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  EXPECT_EQ(diagnosis.decisions.size(), 1u);
}

/// The truth would be removed: an old record of a migration that has ended, or of one before the present one.
TEST(Diagnosis, ARecordThatWouldRemoveTheTruthIsForAPerson) {
  RepairFacts facts = Crossed();
  facts.runs_here = false;
  facts.record.phase = Phase::kFinishing;
  EXPECT_THAT(StepsOf(Diagnose(facts)), ElementsAre(RepairStep::kResume)) << "it fits";
  const auto expect_refused = [&](const char* found) {
    const Diagnosis diagnosis = Diagnose(facts);
    EXPECT_THAT(diagnosis.steps, IsEmpty());
    EXPECT_EQ(diagnosis.truth, "");
    ASSERT_EQ(diagnosis.decisions.size(), 1u);
    EXPECT_THAT(Found(diagnosis), HasSubstr(found));
  };
  facts.source.status = {.partitions = {{State::kServing, 1}}};
  facts.target.status = {.partitions = {{State::kAbsent, 16}}};
  expect_refused("'rocksdb', which the record says is to be removed, serves");
  facts.source.status.partitions = {{State::kFrozen, 1}};
  facts.target.status.partitions = {{State::kServing, 16}};
  expect_refused("is to be removed, serves");
  facts.source.status.partitions = {{State::kMoved, 1}};
  facts.target.status.partitions = {{State::kServing, 15}, {State::kMoved, 1}};
  expect_refused("'mysql', which the record says is the only one to stay, does not serve everywhere");
  facts = Crossed();
  facts.runs_here = false;
  facts.record.phase = Phase::kFinishing;
  facts.record.epoch = 90;
  expect_refused("the record is older than what both sides have");
  facts.record.phase = Phase::kAborting;
  facts.record.on_target = false;
  expect_refused("'mysql', which the record says is to be removed, serves");
  facts.record.released = true;
  expect_refused("'mysql', which the record says is to be removed, serves");
  // After a rollback its host came back as it was before.
  facts.entry.spec.backend = "rocksdb";
  facts.source.status = {.partitions = {{State::kServing, 1}}};
  facts.record.epoch = 100;
  EXPECT_THAT(StepsOf(Diagnose(facts)), ElementsAre(RepairStep::kResume));
}

TEST(Diagnosis, AnOldRecordIsNeverResumedWithoutAComparison) {
  RepairFacts facts = Ready();
  facts.runs_here = false;
  facts.record.epoch = 90;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kCompareAgain, RepairStep::kResume));
  EXPECT_FALSE(diagnosis.crossed);
  facts.target.status.partitions = {{State::kMoved, 16}};
  diagnosis = Diagnose(facts);
  EXPECT_TRUE(diagnosis.crossed) << "the copy has served since";
  facts.record.phase = Phase::kBackfill;
  EXPECT_TRUE(Diagnose(facts).Has(RepairStep::kCompareAgain)) << "nothing is copied over it before";
}

TEST(Diagnosis, ACutoverToACopyThatIsGoneIsPrecededByAComparison) {
  RepairFacts facts = Ready();
  facts.runs_here = false;
  facts.record.phase = Phase::kCutover;
  EXPECT_THAT(StepsOf(Diagnose(facts)), ElementsAre(RepairStep::kResume));
  facts.target.status.partitions = {{State::kAbsent, 16}};
  EXPECT_THAT(StepsOf(Diagnose(facts)), ElementsAre(RepairStep::kCompareAgain, RepairStep::kResume));
  facts.target.status.partitions = {{State::kImporting, 16}};
  facts.record.epoch = 90;
  facts.record.complete = true;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kCompareAgain, RepairStep::kResume));
  EXPECT_EQ(diagnosis.truth, "rocksdb") << "that it was complete is old";
  facts.target.status.partitions = {{State::kFrozen, 16}};
  facts.source.status.partitions = {{State::kMoved, 1}};
  diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  EXPECT_EQ(diagnosis.decisions.size(), 1u);
}

TEST(Diagnosis, WithoutARecordASideThatServesInPartIsForAPerson) {
  RepairFacts facts = Ready();
  LoseRecord(facts);
  facts.source.status.partitions = {{State::kMoved, 1}};
  facts.target.status.partitions = {{State::kServing, 9}, {State::kImporting, 7}};
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  EXPECT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_THAT(Found(diagnosis), HasSubstr("'mysql' serves in part"));
}

TEST(Diagnosis, WithoutARecordAFinishedMigrationIsNotRestored) {
  RepairFacts facts = Ready();
  LoseRecord(facts);
  facts.source.status = {.partitions = {{State::kAbsent, 1}}};
  facts.target.status = {.partitions = {{State::kServing, 16}}};
  const Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("Do not restore the tables of 'rocksdb'"));
  EXPECT_THAT(StepsOf(diagnosis),
              ElementsAre(RepairStep::kRebuildRecord, RepairStep::kRouteCatalog, RepairStep::kResume));
  EXPECT_EQ(diagnosis.truth, "mysql");
  EXPECT_EQ(diagnosis.rebuilt.phase, Phase::kFinishing);
  EXPECT_EQ(FindContradiction(diagnosis.rebuilt, "mysql", facts.target.status, &facts.source.status), "");
}

/// Both sides are on the same servers.
TEST(Diagnosis, EnginesOfOneBackendAreToldApart) {
  RepairFacts facts = Crossed();
  facts.record.source = facts.source.backend = facts.entry.other_backend = "mysql";
  facts.record.target_engine = facts.target.engine = facts.entry.spec.engine = "myrocks";
  facts.record.source_engine = facts.source.engine = facts.entry.other_engine = "innodb";
  EXPECT_THAT(Diagnose(facts).findings, IsEmpty());
  EXPECT_EQ(Diagnose(facts).truth, "mysql (myrocks)");
  std::swap(facts.entry.spec.engine, facts.entry.other_engine);
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kRouteCatalog));
  EXPECT_THAT(Found(diagnosis), HasSubstr("'mysql' (engine 'innodb'), which does not serve"));
  // The catalog does not speak for the copy only because its backend has the same name.
  facts = Crossed();
  facts.record.source = facts.source.backend = facts.entry.other_backend = "mysql";
  facts.record.target_engine = facts.target.engine = facts.entry.spec.engine = "myrocks";
  std::swap(facts.source.status, facts.target.status);
  EXPECT_FALSE(Diagnose(facts).Has(RepairStep::kTurnRecord));
}

TEST(Diagnosis, ALostLogIsMadeUpForByAComparison) {
  RepairFacts facts = Ready();
  facts.source.status.capture = false;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("its dirty log is lost"));
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kCompareAgain, RepairStep::kResume));
  facts.record.phase = Phase::kBackfill;
  EXPECT_THAT(StepsOf(Diagnose(facts)), ElementsAre(RepairStep::kResume)) << "the comparison is to come";
  facts = Ready();
  facts.source.log_problem = absl::NotFoundError("no such table");
  diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  ASSERT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_EQ(diagnosis.decisions[0].command, "kv migrate cancel events");
}

TEST(Diagnosis, TablesThatAreGone) {
  RepairFacts facts = Ready();
  facts.source.status.partitions = {{State::kServing, 3}, {State::kAbsent, 1}};
  facts.runs_here = false;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty()) << "a worker would remove from the copy what is gone";
  ASSERT_EQ(diagnosis.decisions.size(), 1u);
  EXPECT_THAT(diagnosis.decisions[0].why, HasSubstr("restore them first"));
  facts = Ready();
  facts.target.status.partitions = {{State::kImporting, 15}, {State::kAbsent, 1}};
  diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kCompareAgain, RepairStep::kResume));
}

TEST(Diagnosis, ACatalogThatRoutesToASideThatDoesNotServe) {
  RepairFacts facts = Crossed();
  facts.entry = Ready().entry;
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(Found(diagnosis), HasSubstr("routes clients to 'rocksdb', which does not serve"));
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kRouteCatalog));
  facts = Ready();
  facts.entry.other_backend.clear();
  EXPECT_THAT(Found(Diagnose(facts)), HasSubstr("could be altered or dropped"));
  facts.source.problem = absl::UnavailableError("down");
  EXPECT_FALSE(Diagnose(facts).Has(RepairStep::kRouteCatalog)) << "it is not known to serve";
}

TEST(Diagnosis, ARecordThatIsLostIsMadeOfWhatBothSidesHave) {
  RepairFacts facts = Ready();
  LoseRecord(facts);
  Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(StepsOf(diagnosis), ElementsAre(RepairStep::kRebuildRecord, RepairStep::kResume));
  EXPECT_EQ(diagnosis.rebuilt.phase, Phase::kPrepare);
  EXPECT_EQ(diagnosis.rebuilt.source, "rocksdb");
  EXPECT_EQ(diagnosis.rebuilt.incarnation, 7u);

  facts.target.status.partitions = {{State::kAbsent, 16}};
  EXPECT_EQ(Diagnose(facts).rebuilt.phase, Phase::kAborting);

  facts = Crossed();
  LoseRecord(facts);
  diagnosis = Diagnose(facts);
  EXPECT_EQ(diagnosis.rebuilt.phase, Phase::kVerify);
  EXPECT_TRUE(diagnosis.rebuilt.on_target && diagnosis.rebuilt.crossed);
  EXPECT_EQ(diagnosis.rebuilt.target, "mysql");
  EXPECT_EQ(diagnosis.rebuilt.verified, "") << "so nothing is copied before both were compared";

  // In the middle of a cutover, before and after the other side was opened.
  facts = Ready();
  LoseRecord(facts);
  facts.source.status.partitions = {{State::kMoved, 1}};
  diagnosis = Diagnose(facts);
  EXPECT_EQ(diagnosis.rebuilt.phase, Phase::kVerify);
  EXPECT_TRUE(!diagnosis.rebuilt.on_target && diagnosis.rebuilt.crossed);
  facts.target.status.partitions = {{State::kServing, 16}};
  diagnosis = Diagnose(facts);
  EXPECT_TRUE(diagnosis.rebuilt.on_target);
  EXPECT_THAT(StepsOf(diagnosis),
              ElementsAre(RepairStep::kRebuildRecord, RepairStep::kRouteCatalog, RepairStep::kResume));
  facts.source.status.partitions = {{State::kServing, 1}};
  diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty()) << "both serve";
  EXPECT_EQ(diagnosis.decisions.size(), 1u);
  facts.source.status.partitions = {{State::kAbsent, 1}};
  facts.target.status.partitions = {{State::kMoved, 16}};
  EXPECT_THAT(Diagnose(facts).steps, IsEmpty());
}

TEST(Diagnosis, ARecordThatCannotBeReadIsForAPerson) {
  RepairFacts facts = Ready();
  LoseRecord(facts);
  facts.record_problem = absl::DataLossError("the migration's record: damaged");
  const Diagnosis diagnosis = Diagnose(facts);
  EXPECT_THAT(diagnosis.steps, IsEmpty());
  EXPECT_EQ(diagnosis.decisions.size(), 1u);
}

TEST(Diagnosis, ItsJsonHasAllOfIt) {
  RepairFacts facts = Crossed();
  facts.runs_here = false;
  facts.target.boot = "another";
  const Json json = ToJson(facts, Diagnose(facts));
  EXPECT_EQ(json["phase"], "reversible");
  EXPECT_EQ(json["truth"], "mysql");
  EXPECT_EQ(json["worker"], "none");
  EXPECT_EQ(json["source"]["partitions"], Json({{"moved", 1}}));
  EXPECT_EQ(json["source"]["restarted_or_replaced"], false);
  EXPECT_EQ(json["target"]["restarted_or_replaced"], true);
  EXPECT_EQ(json["steps"][0]["step"], "resume");
}

}  // namespace
}  // namespace kvstore::migration
