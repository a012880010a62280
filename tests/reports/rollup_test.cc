#include "reports/rollup.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.h"
#include "base/shift_clock.h"
#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/rows.h"
#include "tests/reports/rollup_fixture.h"

/// How roll-ups are made, kept up to date and removed.
namespace kvstore::reports {
namespace {

constexpr uint64_t kDayMs = 86'400'000;
constexpr uint64_t kHourMs = 3'600'000;

/// Sets the clock of this process while it lives.
class ClockAt {
 public:
  explicit ClockAt(int64_t ms) { ShiftWallClock(ms - static_cast<int64_t>(WallClockMs())); }
  ~ClockAt() { ShiftWallClock(0); }
  ClockAt(const ClockAt&) = delete;
  ClockAt& operator=(const ClockAt&) = delete;
};

class RollupTest : public testing::RollupFixture {};

TEST_F(RollupTest, ALateWriteIsInTheAnswerAtOnce) {
  LoadAndRoll();
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u);
  Write(3 * kDay, 1'000'000);
  const QueryResult late = Ask(Days(0, 60));
  EXPECT_EQ(late.cost.from_rollups, 3u) << "the other rows are as they were";
  EXPECT_GT(late.cost.chunks, 0u);
  const RollupResult made = Make();
  EXPECT_EQ(made.rows_written, 1u);
  EXPECT_EQ(made.rows_current, made.rows - 1);
  const QueryResult again = Ask(Days(0, 60));
  EXPECT_EQ(again.cost.from_rollups, 4u);
  EXPECT_EQ(again.series[0].points, late.series[0].points);
}

TEST_F(RollupTest, ADeleteIsInTheAnswerAtOnce) {
  LoadAndRoll();
  ReportInfo clicks = info_;
  clicks.metrics.resize(1);
  EXPECT_OK(DeletePoints(metadata_, clicks, {2 * kDay, 4 * kDay}));
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 2u);
  Make();
  const QueryResult result = Ask(Days(0, 60));
  EXPECT_EQ(result.cost.from_rollups, 4u);
  EXPECT_EQ(result.series[0].points.size(), 58u) << "a step without points is not there";
  // A row whose points are all deleted has a roll-up without steps.
  EXPECT_OK(DeletePoints(metadata_, clicks, {0, 60 * kDay}));
  Make();
  const QueryResult nothing = Ask(Days(0, 60));
  EXPECT_TRUE(nothing.series.empty());
}

TEST_F(RollupTest, CompactionLeavesThemUpToDate) {
  LoadAndRoll();
  for (int64_t hour = 0; hour < 5; ++hour) Write(hour * kHour, 5, true);
  Make();
  ASSERT_OK_AND_ASSIGN(const CompactionResult compacted, CompactReport(metadata_, "r", {}));
  EXPECT_GT(compacted.chunks_merged, 5u);
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u);
  const RollupResult made = Make();
  EXPECT_EQ(made.rows_written, 0u);
  EXPECT_EQ(made.rows_current, made.rows);
}

TEST_F(RollupTest, RowsThatAreUpToDateAreNotRead) {
  LoadAndRoll();
  std::atomic<int> reads{0};
  store_.before_read = [&](std::string_view row) {
    if (IsRowOfPoints(row)) ++reads;
    return absl::OkStatus();
  };
  Make();
  EXPECT_EQ(reads, 0);
  Write(3 * kDay, 5);
  Make();
  EXPECT_EQ(reads, 2) << "its version, and the row";
}

/// Whatever is written at whichever moment of the making, the answer has it: what was made of a part of a row
/// does not have the name of the whole.
TEST_F(RollupTest, AWriteWhileTheyAreMadeIsInTheAnswer) {
  store_.page_columns = 2;
  for (int64_t i = 0; i < 5; ++i) Write(i * kDay, 10 + i);
  Declare({{.keys = {}, .step_ms = kDayMs}});
  uint64_t written = 0;
  for (int moment = 1; moment <= 8; ++moment) {
    Write(7 * kDay, moment);
    int reads = 0;
    store_.before_read = [&](std::string_view row) {
      if (!IsRowOfPoints(row) || ++reads != moment) return absl::OkStatus();
      // From a writer whose clock is far behind: its chunk stands before those of the pages that were read.
      PointBlock block(MetricKind::kValue, 2);
      block.Append(std::vector<uint32_t>{1, 1},
                   {.times = {8 * kDay}, .numbers = {Number::Integer(100)}, .adds = {1}});
      auto bytes = EncodeChunk(block, {});
      EXPECT_OK(bytes);
      const ChunkName name = NameOfPart(LeastChunkNumber(static_cast<uint64_t>(moment)), 0);
      const CellWrite cells[] = {{name, *bytes, std::nullopt}, {kVersionColumn, name, std::nullopt}};
      EXPECT_OK(store_.PutRow("reports", row, cells, {}));
      ++written;
      return absl::OkStatus();
    };
    EXPECT_OK(MakeRollups(metadata_, "r", {.keep_all = true}));
    store_.before_read = nullptr;
    Query query = Days(8, 9);
    query.group_by = {};
    const auto expect_all = [&](const QueryResult& result) {
      ASSERT_EQ(result.series.size(), 1u);
      ASSERT_EQ(result.series[0].points.size(), 1u);
      EXPECT_EQ(result.series[0].points[0].second, Number::Integer(static_cast<int64_t>(100 * written)));
    };
    ASSERT_EQ(written, static_cast<uint64_t>(moment));
    expect_all(Ask(query));
    Make({.keep_all = true});
    const QueryResult again = Ask(query);
    EXPECT_EQ(again.cost.from_rollups, 1u);
    expect_all(again);
  }
}

TEST_F(RollupTest, OfTwoThatMakeThemTheLaterVersionStays) {
  Load(60);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  int writes = 0;
  store_.before_write = [&](std::string_view row) {
    if (IsRowOfRollups(row) && writes++ == 0) {
      Write(kDay, 1'000'000);
      Make();
    }
    return absl::OkStatus();
  };
  Make();
  store_.before_write = nullptr;
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u) << "none was made older again";
}

TEST_F(RollupTest, KilledAtAnyWriteNothingIsWrong) {
  Load(60);
  for (int killed_at = 0; killed_at < 24; ++killed_at) {
    Declare({{.keys = {"country"}, .step_ms = killed_at % 2 == 0 ? kDayMs : 5 * kDayMs}});
    Write(killed_at * kDay, killed_at);
    int writes = 0;
    store_.before_write = [&](std::string_view) {
      return writes++ >= killed_at % 6 ? absl::UnavailableError("killed") : absl::OkStatus();
    };
    MakeRollups(metadata_, "r").IgnoreError();
    store_.before_write = nullptr;
    Ask(Days(0, 60));
  }
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  Make();
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 4u);
}

TEST_F(RollupTest, OnesThatAreRemovedLeaveNothing) {
  Load(60);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}, {.keys = {"app"}, .step_ms = kDayMs}});
  Make();
  EXPECT_EQ(RollupRows().size(), 16u);
  Declare({{.keys = {"app"}, .step_ms = kDayMs}});
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 0u) << "from the moment on when it is removed";
  Make();
  for (const std::string& row : RollupRows()) {
    ASSERT_OK_AND_ASSIGN(const Row page, store_.GetRow("reports", row, {}));
    for (const Item& item : page.items) {
      EXPECT_TRUE(item.column == "made" || item.column.starts_with("2/")) << item.column;
    }
  }
  Query by_app = Days(0, 60);
  by_app.group_by = {"app"};
  EXPECT_EQ(Ask(by_app).cost.from_rollups, 4u) << "the other one is as it was";
  Declare({});
  Make();
  EXPECT_TRUE(RollupRows().empty());
}

TEST_F(RollupTest, OneThatIsDeclaredLaterIsMadeBesideTheOthers) {
  LoadAndRoll();
  Declare({{.keys = {"country"}, .step_ms = kDayMs}, {.keys = {}, .step_ms = kDayMs}});
  const RollupResult made = Make();
  EXPECT_EQ(made.rows_written, made.rows);
  Query query = Days(0, 60);
  EXPECT_EQ(Ask(query).cost.from_rollups, 4u);
  const uint64_t by_country = Ask(query).cost.bytes;
  query.group_by = {};
  const QueryResult all = Ask(query);
  EXPECT_EQ(all.cost.from_rollups, 4u);
  EXPECT_LT(all.cost.bytes, by_country) << "the one with fewer keys is read";
}

TEST_F(RollupTest, ADroppedReportLeavesNothing) {
  LoadAndRoll();
  ASSERT_OK(DropReport(metadata_, "r"));
  EXPECT_TRUE(RollupRows().empty());
  // Nor one that is dropped while they are made.
  SetUp();
  Load(60);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  int writes = 0;
  store_.before_write = [&](std::string_view row) {
    if (IsRowOfRollups(row) && writes++ == 0) {
      EXPECT_OK(DropReport(metadata_, "r"));
    }
    return absl::OkStatus();
  };
  EXPECT_OK(MakeRollups(metadata_, "r"));
  store_.before_write = nullptr;
  EXPECT_GT(writes, 0);
  EXPECT_TRUE(RollupRows().empty());
}

TEST_F(RollupTest, WhatExpiresTakesItsRollupsAlong) {
  LoadAndRoll();
  EXPECT_EQ(RollupRows().size(), 16u);
  {
    const ClockAt clock(70 * kDay + kHour);
    ASSERT_OK(metadata_.SetRetention("r", 35 * kDayMs));
    EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 0u) << "the moment lies in the second period, within a day";
    EXPECT_EQ(Make().rows_current, 16u);
    ASSERT_OK_AND_ASSIGN(const CompactionResult compacted, CompactReport(metadata_, "r", {}));
    EXPECT_EQ(compacted.rows_expired, 8u);
    EXPECT_EQ(RollupRows().size(), 8u);
    ASSERT_OK(metadata_.SetRetention("r", 0));
  }
  const QueryResult result = Ask(Days(0, 60));
  EXPECT_EQ(result.cost.from_rollups, 2u);
  EXPECT_EQ(result.cost.rows, 2u);
}

TEST_F(RollupTest, OneThatSavesNothingIsNotKept) {
  for (int64_t day = 0; day < 3; ++day) Write(day * kDay, day);
  Declare({{.keys = {"country", "app"}, .step_ms = kHourMs}});
  EXPECT_EQ(Make().rows_written, 1u);
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 0u);
  EXPECT_EQ(Make().rows_current, 1u) << "it is not tried again";
  ASSERT_EQ(RollupRows().size(), 1u);
  ASSERT_OK_AND_ASSIGN(const Row page, store_.GetRow("reports", RollupRows()[0], {}));
  EXPECT_EQ(page.items.size(), 1u) << "what says so, and nothing else";
}

TEST_F(RollupTest, RowsThatAreWrittenToAreLeftForLater) {
  Load(60);
  Declare({{.keys = {"country"}, .step_ms = kDayMs}});
  // The store's timestamps begin with 1970.
  EXPECT_EQ(Make({.quiet_ms = 2 * WallClockMs()}).rows_written, 0u);
  EXPECT_EQ(Make({.quiet_ms = 1'000}).rows_written, 16u);
}

}  // namespace
}  // namespace kvstore::reports
