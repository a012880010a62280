#include "migration/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/status_matchers.h"

namespace kvstore::migration {
namespace {

using testing::FailsWith;

Record Full() {
  Record record{.dataset = "events",
                .incarnation = UINT64_MAX,
                .source = "rocksdb",
                .target = "mysql",
                .target_engine = "myrocks",
                .phase = Phase::kBackfill,
                .wanted = Wanted::kCancel,
                .automatic = true,
                .epoch = 7,
                .owner = "p1",
                .limits = {.units_per_s = 5, .share = 20},
                .threads = 3,
                .problem = "host \"db1\" is down"};
  // Keys are bytes.
  record.parts.push_back({.range = {.start = std::string("\0\xff\x01", 3), .shard = "mod00001"},
                          .next = "k",
                          .units = 3,
                          .bytes = 9});
  record.parts.push_back({.range = {.end = "z"}, .done = true, .units = 4});
  record.AddEvent("ann", "created", 5);
  return record;
}

TEST(Record, IsReadAsItWasWritten) {
  const Record record = Full();
  ASSERT_OK_AND_ASSIGN(const Record read, Decode(Encode(record)));
  EXPECT_EQ(Encode(read), Encode(record));
  EXPECT_EQ(read.incarnation, UINT64_MAX);
  EXPECT_EQ(read.phase, Phase::kBackfill);
  EXPECT_EQ(read.wanted, Wanted::kCancel);
  EXPECT_EQ(read.limits, record.limits);
  EXPECT_EQ(read.parts[0].range, record.parts[0].range);
  EXPECT_EQ(read.UnitsDone(), 7u);
  EXPECT_EQ(read.PartsDone(), 1u);
}

TEST(Record, DamageIsNamed) {
  EXPECT_THAT(Decode("{"), FailsWith(absl::StatusCode::kDataLoss, "record"));
  std::string text = Encode(Full());
  text.replace(text.find("\"backfill\""), 10, "\"nonsense\"");
  EXPECT_THAT(Decode(text), FailsWith(absl::StatusCode::kDataLoss, "phase"));
}

TEST(Record, OneOfANewerVersionIsNotTakenForDamaged) {
  std::string text = Encode(Full());
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 3");
  EXPECT_THAT(Decode(text), FailsWith(absl::StatusCode::kDataLoss,
                                      "format 3 was written by a newer version; this one reads format 2"));
}

TEST(Record, HasANewerFormatOnlyWhereAnEarlierVersionWouldNotUnderstandIt) {
  Record record = Full();
  EXPECT_NE(Encode(record).find("\"format\": 1"), std::string::npos);
  record.complete = true;
  EXPECT_NE(Encode(record).find("\"format\": 2"), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const Record read, Decode(Encode(record)));
  EXPECT_TRUE(read.complete);
}

TEST(Record, KnowsWhatShadowReadsHaveFound) {
  Record record = Full();
  EXPECT_EQ(Encode(record).find("shadow"), std::string::npos) << "an older version would not understand it";
  record.shadow = {
      .share = 7, .compared = 6, .dropped = 5, .differences = 4, .open = 3, .examples = {"row 'a'"}};
  EXPECT_NE(Encode(record).find("\"format\": 2"), std::string::npos);
  ASSERT_OK_AND_ASSIGN(Record read, Decode(Encode(record)));
  EXPECT_EQ(Encode(read), Encode(record));
  EXPECT_EQ(read.shadow.examples, record.shadow.examples);
  read.phase = Phase::kReady;
  read.wanted = Wanted::kNothing;
  EXPECT_THAT(CheckCommand(read, "cutover"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "3 units that were read differ"));
  read.shadow.open = 0;
  EXPECT_OK(CheckCommand(read, "cutover"));
}

TEST(Record, KeepsTheLastEventsOnly) {
  Record record;
  for (uint64_t i = 0; i < 1000; ++i) record.AddEvent("w", std::to_string(i), i);
  EXPECT_LE(record.events.size(), 200u);
  EXPECT_EQ(record.events.back().what, "999");
}

TEST(Record, SaysWhatIsPossible) {
  Record record = Full();
  record.phase = Phase::kReversible;
  record.wanted = Wanted::kNothing;
  EXPECT_OK(CheckCommand(record, "rollback"));
  EXPECT_THAT(CheckCommand(record, "cutover"), FailsWith(absl::StatusCode::kFailedPrecondition,
                                                         "possible now: verify, reverse, rollback, finish"));
  const Json status = StatusJson(record, DirtyLag{.entries = 3, .oldest_ms = 12});
  EXPECT_EQ(status["truth"], "rocksdb");
  EXPECT_EQ(status["lag"]["units"], 3);
}

TEST(Record, WhatWasAskedForAndIsNotDoneIsNotPushedAside) {
  Record record = Full();
  record.phase = Phase::kReversible;
  record.wanted = Wanted::kReverse;
  EXPECT_THAT(CheckCommand(record, "finish"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "finish: reverse was asked for before"));
  EXPECT_OK(CheckCommand(record, "reverse")) << "once more is the same";
  EXPECT_OK(CheckCommand(record, "rollback")) << "it goes the same way, and further";
  EXPECT_OK(CheckCommand(record, "abandon")) << "with a side gone nothing else is ever done";
  EXPECT_OK(CheckCommand(record, "throttle"));
  EXPECT_OK(CheckCommand(record, "pause"));
  record.wanted = Wanted::kFinish;
  EXPECT_FALSE(CheckCommand(record, "reverse").ok());
  EXPECT_FALSE(CheckCommand(record, "rollback").ok());
  record.wanted = Wanted::kVerify;
  EXPECT_OK(CheckCommand(record, "finish")) << "a comparison is for nobody to wait for";
  record.phase = Phase::kReady;
  record.wanted = Wanted::kCutover;
  EXPECT_OK(CheckCommand(record, "cancel"));
  record.wanted = Wanted::kCancel;
  EXPECT_FALSE(CheckCommand(record, "cutover").ok());
}

TEST(Record, OnlyStartStartsOne) {
  Record record = Full();
  record.phase = Phase::kCreated;
  EXPECT_OK(CheckCommand(record, "start"));
  EXPECT_THAT(CheckCommand(record, "resume"), FailsWith(absl::StatusCode::kFailedPrecondition, "start"));
  EXPECT_THAT(CheckCommand(record, "throttle"), FailsWith(absl::StatusCode::kFailedPrecondition, "start"));
  record.phase = Phase::kCutover;
  EXPECT_OK(CheckCommand(record, "resume")) << "its worker may be gone";
  record.phase = Phase::kFinished;
  EXPECT_THAT(CheckCommand(record, "resume"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "possible now: none"));
}

}  // namespace
}  // namespace kvstore::migration
