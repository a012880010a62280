#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "reports/compaction.h"
#include "reports/rollup.h"
#include "reports/row_list.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/clicks_report.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

/// Points of every millisecond around the moment at which they expire, which moves on while the test runs.
namespace kvstore::reports {
namespace {

using kvstore::testing::MemoryStore;

constexpr int64_t kRetentionMs = 3'600'000;
/// How many points lie on each side of the moment when the test begins.
constexpr int64_t kAround = 20'000;

class RetentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_.page_columns = 1'000;
    ASSERT_OK_AND_ASSIGN(
        info_,
        metadata_.Create(testing::ClicksReport({.resolution_ms = 1,
                                                .period_s = 2,
                                                .salts = 2,
                                                .retention_ms = static_cast<uint64_t>(kRetentionMs)})));
    const int64_t moment = Moment();
    first_ = moment - kAround;
    end_ = moment + kAround;
    Batch batch(info_);
    for (int64_t time = first_; time < end_; ++time) {
      const std::optional<std::string_view> segments[] = {time % 2 == 0 ? "even" : "odd"};
      ASSERT_OK(batch.Add(0, time, segments, Number::Integer(1)));
    }
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
  }

  /// Points before this time are expired now.
  static int64_t Moment() { return static_cast<int64_t>(WallClockMs()) - kRetentionMs; }

  /// Asks for all points by different functions, and expects those that are young enough and no others: the
  /// first one that counts is that of a moment during the query.
  void ExpectYoungAlone(bool use_rollups) {
    Query query{.report = "r", .metrics = {{.name = "clicks"}}, .from = 0, .to = kMaxTimeMs + 1};
    query.use_rollups = use_rollups;
    for (const char* step : {"", "1s", "1d"}) {
      if (*step != '\0') {
        query.step = *ParseStep(step);
        query.from = first_ - 5'000;
        query.to = end_;
      }
      const int64_t before = Moment();
      const auto result = RunQuery(metadata_, query);
      const int64_t after = Moment();
      ASSERT_OK(result);
      int64_t count = 0;
      for (const auto& [time, value] : result->series[0].points) count += value.integer();
      // On a slow machine all of them may have expired by now.
      EXPECT_LE(end_ - count, std::min(after, end_)) << "a point that is young enough is missing";
      EXPECT_GE(end_ - count, std::min(before, end_)) << "a point is there that has expired";
    }
  }
  /// The ends of the periods that have rows.
  std::vector<int64_t> EndsOfRows() {
    std::vector<int64_t> ends;
    const auto take = [&](std::span<const ListedRow> rows) {
      for (const ListedRow& row : rows) {
        ends.push_back(static_cast<int64_t>(row.key.period_start_s + info_.settings.period_s) * 1'000);
      }
      return absl::OkStatus();
    };
    for (uint8_t salt = 0; salt < 2; ++salt)
      EXPECT_OK(ListRows(store_, "reports", ReportRange(salt, info_.settings.id), take));
    return ends;
  }

  MemoryStore store_;
  Metadata metadata_{store_, "reports"};
  ReportInfo info_;
  int64_t first_ = 0;
  int64_t end_ = 0;
};

TEST_F(RetentionTest, HidesAPointAtTheMomentWhenItExpires) {
  for (int i = 0; i < 10; ++i) ExpectYoungAlone(/*use_rollups=*/false);
  ASSERT_OK(metadata_.SetRollups(
      "r", {{.keys = {}, .step_ms = 1}, {.keys = {}, .step_ms = 500}, {.keys = {}, .step_ms = 2'000}}));
  ASSERT_OK(MakeRollups(metadata_, "r", {.keep_all = true}));
  for (int i = 0; i < 10; ++i) ExpectYoungAlone(/*use_rollups=*/true);
}

TEST_F(RetentionTest, ACompactionRemovesTheRowsThatHaveNothingElse) {
  ASSERT_OK(metadata_.SetRollups("r", {{.keys = {}, .step_ms = 500}}));
  ASSERT_OK(MakeRollups(metadata_, "r", {.keep_all = true}));
  const size_t rows_before = EndsOfRows().size();
  const int64_t before = Moment();
  ASSERT_OK_AND_ASSIGN(const CompactionResult compacted, CompactReport(metadata_, "r", {}));
  const int64_t after = Moment();
  EXPECT_GT(compacted.rows_expired, 0u);
  const std::vector<int64_t> ends = EndsOfRows();
  EXPECT_EQ(ends.size(), rows_before - compacted.rows_expired);
  // A row goes as soon as its last point has expired, and not before: the end of its period counts no more.
  for (const int64_t end : ends) EXPECT_GT(end, before);
  const int64_t expired_at_most = 2 * ((after - (first_ - first_ % 2'000)) / 2'000);
  EXPECT_LE(static_cast<int64_t>(compacted.rows_expired), expired_at_most);
  ExpectYoungAlone(/*use_rollups=*/true);
  ExpectYoungAlone(/*use_rollups=*/false);
}

TEST_F(RetentionTest, ALongerOneShowsWhatIsStillThere) {
  ASSERT_OK(metadata_.SetRetention("r", 0));
  const Query all{.report = "r", .metrics = {{.name = "clicks"}}, .from = 0, .to = kMaxTimeMs + 1};
  ASSERT_OK_AND_ASSIGN(const QueryResult result, RunQuery(metadata_, all));
  EXPECT_EQ(result.series[0].points[0].second, Number::Integer(2 * kAround));
}

TEST_F(RetentionTest, WhatIsWrittenTooLateIsNeverSeen) {
  Batch batch(info_);
  const std::optional<std::string_view> segments[] = {"even"};
  ASSERT_OK(batch.Add(0, first_ - 10'000, segments, Number::Integer(1'000'000)));
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  ExpectYoungAlone(/*use_rollups=*/true);
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  for (const int64_t end : EndsOfRows()) EXPECT_GT(end, first_) << "its row is gone, too";
}

}  // namespace
}  // namespace kvstore::reports
