#include "reports/deletes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kvstore_api/in_doubt.h"
#include "reports/row_list.h"
#include "tests/reports/rollup_fixture.h"

/// Tests of what deletes and drops remove, and what they cost.
namespace kvstore::reports {
namespace {

class DeletesTest : public testing::RollupFixture {
 protected:
  ReportInfo Clicks() const {
    ReportInfo clicks = info_;
    clicks.metrics.resize(1);
    return clicks;
  }
  /// Expects that whole rows are not scanned from now on.
  void ExpectNoWholeScan() {
    store_.before_scan = [](const ScanOptions& options) {
      EXPECT_TRUE(options.columns.has_value()) << "a scan of all columns reads all chunks";
      return absl::OkStatus();
    };
  }
  /// The reports that any row of points or of roll-ups is of.
  std::set<uint32_t> ReportsWithRows() {
    std::set<uint32_t> reports;
    auto cursor = store_.ScanRows("reports", {.start = "", .end = "\x80"}, {});
    EXPECT_OK(cursor);
    ScannedRow row;
    while (*(*cursor)->Next(row)) {
      const auto key =
          static_cast<uint8_t>(row.key[0]) < kMaxSalts ? DecodeRowKey(row.key) : DecodeRollupKey(row.key);
      EXPECT_OK(key);
      reports.insert(key->report);
    }
    return reports;
  }
};

TEST_F(DeletesTest, NoChunkIsRead) {
  Load(60);
  ExpectNoWholeScan();
  // Listed one by one, and found by a walk.
  for (const int64_t to : {60 * kDay, kMaxTimeMs + 1}) {
    store_.ResetCounts();
    ASSERT_OK_AND_ASSIGN(const uint64_t rows, DeletePoints(metadata_, Clicks(), {kDay, to}));
    EXPECT_EQ(rows, 2u * kSalts) << "rows that are there, of all that could be";
    EXPECT_LT(store_.counts().bytes_read, 500u);
  }
  EXPECT_EQ(Ask(Days(0, 60)).series[0].points.size(), 1u);
  EXPECT_EQ(Ask(Days(0, 60, "price")).series[0].points.size(), 60u);
}

TEST_F(DeletesTest, ADropReadsNoChunkAndLeavesNothing) {
  LoadAndRoll();
  ExpectNoWholeScan();
  store_.ResetCounts();
  ASSERT_OK(DropReport(metadata_, "r"));
  EXPECT_LT(store_.counts().bytes_read, 1'000u) << "the settings";
  store_.before_scan = nullptr;
  EXPECT_TRUE(ReportsWithRows().empty());
}

TEST_F(DeletesTest, WhatFailsAfterItsFirstRowIsInDoubt) {
  Load(60);
  const auto fail_after = [this](int rows) {
    store_.before_write = [rows](std::string_view) mutable {
      return rows-- > 0 ? absl::OkStatus() : absl::UnavailableError("away");
    };
  };
  const auto is_in_doubt = [](const absl::Status& status) {
    EXPECT_THAT(status, testing::FailsWith(absl::StatusCode::kUnavailable, "away"));
    return IsInDoubt(status);
  };
  for (const int rows : {0, 1, 2}) {
    fail_after(rows);
    EXPECT_EQ(is_in_doubt(DeletePoints(metadata_, Clicks(), {0, 60 * kDay}).status()), rows > 0);
    fail_after(rows);
    EXPECT_EQ(is_in_doubt(DropReport(metadata_, "r")), rows > 0);
  }
  store_.before_write = nullptr;
  EXPECT_OK(DropReport(metadata_, "r"));
  EXPECT_TRUE(ReportsWithRows().empty());
}

TEST_F(DeletesTest, ASpanOfNothingTouchesNothing) {
  Load(3);
  for (const TimeSpan span : {TimeSpan{kDay, kDay}, TimeSpan{2 * kDay, kDay}, TimeSpan{-5, 0},
                              TimeSpan{kMaxTimeMs + 1, kMaxTimeMs + 5}, TimeSpan{100 * kDay, 200 * kDay}}) {
    ASSERT_OK_AND_ASSIGN(const uint64_t rows, DeletePoints(metadata_, Clicks(), span));
    EXPECT_EQ(rows, 0u);
  }
  EXPECT_EQ(Ask(Days(0, 60)).series[0].points.size(), 3u);
}

/// The salts of a report are fixed, but not those of its name: what is made anew under it may have others.
TEST_F(DeletesTest, AReportThatIsMadeAgainWithOtherSaltsHasNothingOfTheOldOne) {
  std::vector<TimeValue> first;
  for (const uint32_t salts : {5u, 1u, 64u, 3u}) {
    const uint32_t old = info_.settings.id;
    ASSERT_OK(DropReport(metadata_, "r"));
    EXPECT_TRUE(ReportsWithRows().empty()) << "before one with " << salts << " salts";
    Create(salts);
    EXPECT_GT(info_.settings.id, old);
    EXPECT_TRUE(Ask(Days(0, 60)).series.empty());
    for (int series = 0; series < 24; ++series) {
      const std::string app = "a" + std::to_string(series);
      for (const int64_t day : {1, 29, 30, 59})
        Write(day * kDay, 100 * series + day, /*add=*/false, "c0", app);
    }
    Declare({{.keys = {"country"}, .step_ms = static_cast<uint64_t>(kDay)}});
    EXPECT_GT(Make({.keep_all = true}).rows_written, 0u);
    EXPECT_EQ(ReportsWithRows(), std::set<uint32_t>{info_.settings.id});
    const QueryResult result = Ask(Days(0, 60));
    EXPECT_EQ(result.cost.from_rollups, result.cost.rows);
    ASSERT_EQ(result.series.size(), 1u);
    if (first.empty()) first = result.series[0].points;
    EXPECT_EQ(result.series[0].points, first) << "the same points under " << salts << " salts";
  }
}

}  // namespace
}  // namespace kvstore::reports
