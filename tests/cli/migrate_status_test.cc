#include "cli/migrate_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "migration/record.h"

namespace kvstore::cli {
namespace {

using migration::Phase;
using migration::Record;
using migration::Wanted;

/// The status of a migration whose record is changed by `change`.
Json StatusOf(const std::function<void(Record&)>& change) {
  Record record{.dataset = "events", .source = "rocksdb", .target = "mysql"};
  change(record);
  return migration::StatusJson(record, std::nullopt);
}

TEST(MigrateStatus, WhatWasAskedForIsWaitedForAlsoWhileItIsPaused) {
  const auto paused = [](Phase phase, Wanted wanted) {
    return StatusOf([&](Record& record) {
      record.phase = phase;
      record.wanted = wanted;
      record.paused = true;
    });
  };
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kBackfill, Wanted::kCancel)));
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kAborting, Wanted::kNothing)));
  EXPECT_TRUE(WaitsForOperator(paused(Phase::kAborted, Wanted::kNothing)));
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kVerify, Wanted::kNothing))) << "a pause does not stop it";
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kReady, Wanted::kCutover)));
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kCutover, Wanted::kNothing)));
  EXPECT_FALSE(WaitsForOperator(paused(Phase::kFinishing, Wanted::kNothing)));
  EXPECT_TRUE(WaitsForOperator(paused(Phase::kReversible, Wanted::kNothing)));
}

TEST(MigrateStatus, CopyingThatIsPausedWaitsForAResume) {
  const Json paused = StatusOf([](Record& record) {
    record.phase = Phase::kBackfill;
    record.paused = true;
  });
  EXPECT_TRUE(WaitsForOperator(paused));
  EXPECT_TRUE(WaitsForResume(paused));
  const Json ready = StatusOf([](Record& record) {
    record.phase = Phase::kReady;
    record.paused = true;
  });
  EXPECT_TRUE(WaitsForOperator(ready));
  EXPECT_FALSE(WaitsForResume(ready));
}

TEST(MigrateStatus, ADoubtWaitsForAnOperatorUntilOneHasAnswered) {
  const auto doubtful = [](Wanted wanted) {
    return StatusOf([&](Record& record) {
      record.phase = Phase::kVerify;
      record.doubt = "of 100 units 40 differ";
      record.wanted = wanted;
    });
  };
  EXPECT_TRUE(WaitsForOperator(doubtful(Wanted::kNothing)));
  EXPECT_FALSE(WaitsForOperator(doubtful(Wanted::kResolve)));
}

TEST(MigrateStatus, OneThatCutsOverByItselfIsWaitedFor) {
  const auto ready = [](bool automatic) {
    return StatusOf([&](Record& record) {
      record.phase = Phase::kReady;
      record.automatic = automatic;
    });
  };
  EXPECT_FALSE(WaitsForOperator(ready(true)));
  EXPECT_TRUE(WaitsForOperator(ready(false)));
}

TEST(MigrateStatus, TheTextHasTheLimitsInForce) {
  const Json status = StatusOf([](Record& record) {
    record.phase = Phase::kBackfill;
    record.limits = {.units_per_s = 10'000, .bytes_per_s = 0, .share = 25, .max_read_us = 0};
  });
  EXPECT_THAT(
      StatusText(status),
      ::testing::HasSubstr(
          "limits        --share 25 --units-per-s 10000 --bytes-per-s 0 --max-read-us 0; 0 is no limit\n"));
  // kv has only these fields if the migration ended while it watched.
  EXPECT_THAT(StatusText({{"dataset", "events"}, {"phase", "aborted"}}),
              ::testing::StartsWith("dataset       events\nphase         aborted\n"));
}

TEST(MigrateStatus, ARepairSaysWhatItFindsAndWhatIsNext) {
  const Json answer = Json::parse(R"({
    "dataset": "events", "phase": "reversible", "truth": "mysql", "worker": "none", "owner": "", "epoch": 7,
    "catalog": {"backend": "rocksdb", "other_backend": "mysql"},
    "source": {"backend": "rocksdb", "answers": true, "partitions": {"moved": 1}, "records_writes": true,
               "log": {"units": 3, "ms": 0}, "restarted_or_replaced": true},
    "target": {"backend": "mysql", "answers": false, "problem": "no route"},
    "findings": ["one", "two"], "steps": [{"step": "resume", "does": "go on"}],
    "decisions": [{"why": "only a person knows", "command": "kv migrate resolve events --keep BACKEND"}],
    "done": false})");
  EXPECT_EQ(RepairText(answer),
            "dataset       events\n"
            "phase         reversible\n"
            "worker        none\n"
            "catalog       routes clients to 'rocksdb'; the other side is 'mysql'\n"
            "rocksdb       the source; moved on 1 partition; records writes, 3 not copied yet; restarted or "
            "replaced\n"
            "mysql         the target; it cannot be asked\n"
            "truth         mysql\n"
            "found         one\n"
            "              two\n"
            "would         go on\n"
            "decide        only a person knows: kv migrate resolve events --keep BACKEND\n"
            "next          kv migrate repair events --yes\n");
}

TEST(MigrateStatus, ARepairIsWellOnlyIfNothingIsWrong) {
  Json answer = Json::parse(R"({"findings": [], "notes": ["a host was restarted"], "steps": [],
                                "decisions": [], "done": false})");
  EXPECT_EQ(RepairProblem(answer), "");
  answer["findings"] = {"the catalog routes clients to a side that does not serve"};
  EXPECT_THAT(RepairProblem(answer), ::testing::HasSubstr("what is wrong is said above"));
  answer["steps"] = {{{"step", "resume"}}};
  EXPECT_THAT(RepairProblem(answer), ::testing::HasSubstr("say --yes"));
  answer["done"] = true;
  EXPECT_EQ(RepairProblem(answer), "");
  answer["decisions"] = {{{"why", "a doubt"}}};
  EXPECT_THAT(RepairProblem(answer), ::testing::HasSubstr("a person must decide"));
}

TEST(MigrateStatus, ASharePercentIsInMillionths) {
  EXPECT_EQ(ParseShare("1%"), 10'000u);
  EXPECT_EQ(ParseShare("0.05%"), 500u);
  EXPECT_EQ(ParseShare("100%"), 1'000'000u);
  EXPECT_EQ(ParseShare("0%"), 0u);
  EXPECT_EQ(ParseShare("0.0000001%"), 1u) << "that is not nothing";
  for (const char* const wrong : {"", "%", "1", "-1%", "101%", "1 %", "nan%", "inf%", "1%%", "one%"}) {
    EXPECT_EQ(ParseShare(wrong), std::nullopt) << wrong;
  }
}

TEST(MigrateStatus, ShadowReadsAreTold) {
  const Json status = StatusOf([](Record& record) {
    record.phase = Phase::kReady;
    record.shadow = {.share = 500, .compared = 12, .dropped = 3, .differences = 2, .open = 2};
    record.shadow.examples = {"row 'a' column 'b'", "row 'c' column 'd'"};
  });
  EXPECT_THAT(StatusText(status),
              ::testing::HasSubstr(
                  "shadow reads  0.05 % of the reads; 12 units compared, 3 reads dropped, 2 differed\n"
                  "differ        row 'a' column 'b'\n"
                  "              row 'c' column 'd'\n"));
  EXPECT_THAT(StatusText(status), ::testing::Not(::testing::HasSubstr("kv migrate cutover")));
  EXPECT_THAT(StatusText(StatusOf([](Record&) {})), ::testing::Not(::testing::HasSubstr("shadow")));
}

}  // namespace
}  // namespace kvstore::cli
