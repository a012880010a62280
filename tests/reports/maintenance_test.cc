#include "reports/maintenance.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "reports/row_key.h"
#include "tests/reports/rollup_fixture.h"
#include "tests/support/eventually.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::Eventually;
using kvstore::testing::MemoryStore;

constexpr uint64_t kDayMs = 86'400'000;

/// As fast as it can.
MaintenanceOptions Fast() { return {.interval_ms = 1, .share = 100, .min_chunks = 2, .quiet_ms = 1'000}; }

/// Waits until so many more rounds were begun and ended.
bool MoreRounds(const Maintenance& maintenance, uint64_t rounds) {
  // The round that is going on has perhaps passed what the caller did just now.
  const uint64_t wanted = maintenance.figures().rounds + 1 + rounds;
  return Eventually([&] { return maintenance.figures().rounds >= wanted; });
}

/// The figures that a server would show, by name.
class Sink : public MetricsSink {
 public:
  void Gauge(std::string_view name, std::string_view, const Labels& given, double value) override {
    values[std::string(name)] = value;
    labels = given;
  }
  void Counter(std::string_view name, std::string_view, const Labels&, double value) override {
    values[std::string(name)] = value;
  }
  std::map<std::string, double> values;
  Labels labels;
};

class MaintenanceTest : public testing::RollupFixture {};

TEST_F(MaintenanceTest, MergesChunksAndMakesRollups) {
  for (int64_t i = 0; i < 40; ++i) Write(i * kDay, i);
  for (int64_t hour = 0; hour < 20; ++hour) Write(hour * kHour, hour);
  Declare({{.keys = {}, .step_ms = kDayMs}});
  Maintenance maintenance(store_, Fast());
  ASSERT_TRUE(MoreRounds(maintenance, 1));
  const Maintenance::Figures figures = maintenance.figures();
  EXPECT_GE(figures.chunks_merged, 60u);
  EXPECT_EQ(figures.rollups_made, 2u);
  EXPECT_EQ(figures.reports, 1u);
  EXPECT_EQ(figures.errors, 0u);
  Query query = Days(0, 60);
  query.group_by = {};
  const QueryResult before = Ask(query);
  EXPECT_EQ(before.cost.rows, 2u);
  // After later writes the roll-ups are made again.
  Write(kDay, 1'000);
  Write(kDay, 2'000);
  ASSERT_TRUE(Eventually([&] { return maintenance.figures().rollups_made >= 3; }));
  EXPECT_EQ(Ask(query).series[0].points[1].second, Number::Integer(2'000));
  Sink sink;
  maintenance.Describe(sink);
  EXPECT_GE(sink.values["kvstore_report_rounds_total"], 2);
  EXPECT_GE(sink.values["kvstore_report_chunks_merged_total"], 60);
  EXPECT_GE(sink.values["kvstore_report_rollups_made_total"], 3);
  EXPECT_FALSE(sink.values.contains("kvstore_report_last_error_seconds"));
}

TEST_F(MaintenanceTest, RowsWithoutChangeAreNotRead) {
  std::atomic<uint64_t> reads{0};
  store_.before_read = [&](std::string_view row) {
    if (IsRowOfPoints(row)) ++reads;
    return absl::OkStatus();
  };
  for (int64_t i = 0; i < 40; ++i) Write(i * kDay, i);
  Declare({{.keys = {}, .step_ms = kDayMs}});
  const Maintenance maintenance(store_, Fast());
  ASSERT_TRUE(MoreRounds(maintenance, 1));
  const uint64_t read = reads;
  EXPECT_GT(read, 0u);
  ASSERT_TRUE(MoreRounds(maintenance, 3));
  // The store's timestamps are of 1970, so long ago that no clock can be behind so much.
  EXPECT_EQ(reads, read);
}

TEST(Maintenance, IsQuietWithoutADataset) {
  MemoryStore store;
  std::atomic<uint64_t> writes{0};
  store.before_write = [&](std::string_view) {
    ++writes;
    return absl::OkStatus();
  };
  std::atomic<uint64_t> lines{0};
  MaintenanceOptions options = Fast();
  options.log = [&](const std::string&) { ++lines; };
  const Maintenance maintenance(store, options);
  ASSERT_TRUE(MoreRounds(maintenance, 2));
  EXPECT_EQ(writes, 0u);
  EXPECT_EQ(lines, 0u);
  EXPECT_EQ(maintenance.figures().errors, 0u);
  Sink sink;
  maintenance.Describe(sink);
  EXPECT_TRUE(sink.values.empty());
  EXPECT_TRUE(absl::IsNotFound(store.ScanRows("reports", {}, {}).status())) << "nobody has made it";
}

TEST_F(MaintenanceTest, WhatFailsIsToldOnceAndTriedAgain) {
  for (int64_t i = 0; i < 5; ++i) Write(kDay, i);
  std::atomic<bool> moves{true};
  store_.before_write = [&](std::string_view row) {
    return moves && IsRowOfPoints(row) ? absl::UnavailableError("dataset 'reports' is frozen by a cutover")
                                       : absl::OkStatus();
  };
  std::atomic<uint64_t> lines{0};
  MaintenanceOptions options = Fast();
  options.log = [&](const std::string& line) {
    ++lines;
    EXPECT_NE(line.find("report 'r': UNAVAILABLE: dataset 'reports' is frozen"), std::string::npos) << line;
  };
  const Maintenance maintenance(store_, options);
  ASSERT_TRUE(Eventually([&] { return maintenance.figures().errors >= 3; }));
  EXPECT_EQ(maintenance.figures().chunks_merged, 0u);
  Sink sink;
  maintenance.Describe(sink);
  EXPECT_NEAR(sink.values["kvstore_report_last_error_seconds"], static_cast<double>(WallClockMs()) / 1000,
              3'600);
  EXPECT_EQ(sink.labels, (MetricsSink::Labels{{"report", "r"}, {"code", "UNAVAILABLE"}}));
  moves = false;
  EXPECT_TRUE(Eventually([&] { return maintenance.figures().chunks_merged >= 5; }));
  EXPECT_EQ(lines, 1u);
}

TEST_F(MaintenanceTest, OneReportThatFailsDoesNotStopTheOthers) {
  for (int64_t i = 0; i < 5; ++i) Write(kDay, i);
  ReportInfo other = info_;
  other.name = "a damaged one";
  ASSERT_OK_AND_ASSIGN(other, metadata_.Create(other));
  const CellWrite cell{"info", "{}", std::nullopt};
  ASSERT_OK(store_.PutRow("reports", MetadataRow("a damaged one"), {&cell, 1}, {}));
  const Maintenance maintenance(store_, Fast());
  EXPECT_TRUE(Eventually([&] { return maintenance.figures().chunks_merged >= 5; }));
  EXPECT_TRUE(Eventually([&] { return maintenance.figures().errors >= 1; }));
  EXPECT_TRUE(absl::IsDataLoss(maintenance.figures().last_error));
  EXPECT_EQ(maintenance.figures().failed_report, "a damaged one");
}

/// A call that waits, as one does whose dataset migrates, ends when the maintenance is told to stop; so does
/// a long sleep between two rounds.
TEST_F(MaintenanceTest, StopsAtOnce) {
  Write(kDay, 1);
  std::atomic<bool> waits{false};
  store_.before_read = [&](std::string_view) {
    waits = true;
    while (CheckCall().ok()) std::this_thread::yield();
    return CheckCall();
  };
  {
    Maintenance maintenance(store_, Fast());
    ASSERT_TRUE(Eventually([&] { return waits.load(); }));
    maintenance.Stop();
  }
  store_.before_read = nullptr;
  MaintenanceOptions slow = Fast();
  slow.interval_ms = 86'400'000;
  const Maintenance maintenance(store_, slow);
}

}  // namespace
}  // namespace kvstore::reports
