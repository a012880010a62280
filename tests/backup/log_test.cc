#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backup/layout.h"
#include "backup/list.h"
#include "backup/log_segment.h"
#include "backup/prune.h"
#include "base/shift_clock.h"
#include "tests/backup/log_fixture.h"

/// The log of a real store, sent after its backups, and stores that are restored as of a time.
namespace kvstore {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using backup::Manifest;
using backup::Replayed;
using testing::BackupLog;
using testing::Eventually;
using testing::FailsWith;

TEST_F(BackupLog, AnyTimeIsRestored) {
  Put("before", "backup");
  Ship();
  std::vector<uint64_t> times;
  for (int i = 0; i < 5; ++i) {
    Put("row", std::to_string(i));
    Put("row" + std::to_string(i), "v");
    if (i == 3) {
      ASSERT_OK(router_->DeleteRow("rows", "row0", {}));
    }
    times.push_back(Now());
  }
  for (int i = 0; i < 5; ++i) {
    Replayed replayed;
    const auto restored = RestoreAt(times[static_cast<size_t>(i)], replayed);
    ASSERT_TRUE(restored);
    EXPECT_EQ(Get(*restored, "row"), std::to_string(i));
    EXPECT_EQ(Get(*restored, "before"), "backup");
    EXPECT_EQ(Get(*restored, "row0"), i < 3 ? "v" : "none");
    EXPECT_EQ(Get(*restored, "row" + std::to_string(i)), "v");
    EXPECT_EQ(Get(*restored, "row" + std::to_string(i + 1)), "none");
    EXPECT_LE(replayed.as_of_ms, times[static_cast<size_t>(i)]);
    // It is a store as any other.
    const CellWrite cell{"x", "later", std::nullopt};
    ASSERT_OK(restored->PutRow("rows", "row", {&cell, 1}, {}));
    EXPECT_EQ(Get(*restored, "row"), "later");
  }
}

TEST_F(BackupLog, ATimeBetweenAWriteAndItsSegmentHasTheWrite) {
  Ship(/*ship_ms=*/300);
  Put("row", "v");
  const uint64_t written = WallClockMs();
  AwaitMark();
  const uint64_t at = WallClockMs();
  AwaitShipped();
  Replayed replayed;
  const auto restored = RestoreAt(at, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "v");
  EXPECT_GE(replayed.as_of_ms, written);
  EXPECT_LE(replayed.as_of_ms, at);
}

TEST_F(BackupLog, ATimeInWhichNothingWasWrittenIsToldAsItIs) {
  Ship();
  Put("row", "v");
  const uint64_t quiet = Now() + 20;
  ASSERT_TRUE(Eventually([&] { return WallClockMs() > quiet; }));
  AwaitMark();
  Put("row", "later");
  AwaitShipped();
  Replayed replayed;
  const auto restored = RestoreAt(quiet, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "v");
  EXPECT_EQ(replayed.as_of_ms, quiet);
}

TEST_F(BackupLog, ADatasetThatNothingWasWrittenToIsRestored) {
  Ship();
  ASSERT_OK(router_->CreateDataset({.name = "more"}));
  const uint64_t at = Now();
  Put("row", "later");
  AwaitShipped();
  Replayed replayed;
  const auto restored = RestoreAt(at, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->ListDatasets()->size(), 2u);
  EXPECT_EQ(Get(*restored, "row"), "none");
}

TEST_F(BackupLog, DatasetsThatWereMadeAndDroppedBehindTheBackupAreRestored) {
  Ship();
  ASSERT_OK(router_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  ASSERT_OK(router_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  ASSERT_OK_AND_ASSIGN(const uint64_t pin, router_->CreateObject("pins", R"({"a":1})", {}));
  ASSERT_OK(router_->AddMapping("boards", 7, pin, 1));
  const uint64_t with_both = Now();
  ASSERT_OK(router_->DropDataset("boards", {}));
  ASSERT_OK(router_->DropDataset("rows", {}));
  // One of the same name is another one.
  ASSERT_OK(router_->CreateDataset({.name = "rows", .max_versions = 5}));
  Put("row", "new");
  const uint64_t at_end = Now();
  Replayed replayed;
  const auto both = RestoreAt(with_both, replayed);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->GetObject("pins", pin, {})->data, R"({"a":1})");
  EXPECT_EQ(*both->CountMapping("boards", 7), 1u);
  ASSERT_OK_AND_ASSIGN(const uint64_t next, both->CreateObject("pins", "{}", {}));
  EXPECT_NE(next, pin);
  const auto end = RestoreAt(at_end, replayed);
  ASSERT_TRUE(end);
  EXPECT_EQ(Get(*end, "row"), "new");
  EXPECT_EQ(end->ListDatasets()->size(), 2u);
  EXPECT_EQ(end->GetDataset("rows")->max_versions, 5u);
  EXPECT_TRUE(replayed.at_end);
  ASSERT_OK(end->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  EXPECT_EQ(*end->CountMapping("boards", 7), 0u);
}

TEST_F(BackupLog, WhatIsLostWithTheFolderIsWhatWasNotSent) {
  Ship();
  for (int i = 0; i < 100; ++i) Put("row" + std::to_string(i), std::string(1'000, 'v'));
  AwaitShipped();
  shipper_.reset();
  router_.reset();
  fs::remove_all(dir_ / "store");
  Replayed replayed;
  const auto restored = RestoreAt(WallClockMs(), replayed);
  ASSERT_TRUE(restored);
  for (int i = 0; i < 100; ++i) EXPECT_NE(Get(*restored, "row" + std::to_string(i)), "none") << i;
}

TEST_F(BackupLog, AStopSendsTheRest) {
  Ship();
  Put("row", "last");
  shipper_.reset();
  Replayed replayed;
  const auto restored = RestoreAt(WallClockMs() + 1'000, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "last");
}

TEST_F(BackupLog, ALaterBackupOfTheSameRunIsFollowedByTheSameLog) {
  Ship();
  Put("row", "first");
  AwaitShipped();
  ASSERT_OK_AND_ASSIGN(const Manifest later, MakeBackup(*blobs_));
  Put("row", "second");
  const uint64_t at = Now();
  ASSERT_OK_AND_ASSIGN(const auto base, backup::FindBackupBefore(*blobs_, at));
  EXPECT_EQ(base.manifest.id, later.id);
  Replayed replayed;
  const auto restored = RestoreAt(at, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "second");
}

TEST_F(BackupLog, ABackupBehindTheEndOfALogIsAsItIs) {
  Ship();
  Put("row", "first");
  AwaitShipped();
  shipper_.reset();
  Put("row", "second");
  ASSERT_OK(router_->CreateDataset({.name = "more"}));
  ASSERT_OK(MakeBackup(*blobs_).status());
  Replayed replayed;
  const auto restored = RestoreAt(WallClockMs() + 1'000, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "second");
  EXPECT_EQ(restored->ListDatasets()->size(), 2u);
}

TEST_F(BackupLog, NothingIsRestoredThatWasWrittenLater) {
  Ship(/*ship_ms=*/0);
  Put("row", "early");
  AwaitShipped();
  // Behind a mark, and before the log is read for the segment of that mark.
  std::atomic<uint64_t> before{0};
  SetFailPointHook([&](std::string_view point) {
    if (point != "log-mark" || before != 0) return;
    const uint64_t now = WallClockMs();
    EXPECT_TRUE(Eventually([&] { return WallClockMs() > now; }));
    Put("late", "v");
    before = now;
  });
  ASSERT_TRUE(Eventually([&] { return before != 0; }));
  AwaitShipped();
  Replayed replayed;
  const auto restored = RestoreAt(before, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "early");
  EXPECT_EQ(Get(*restored, "late"), "none");
  EXPECT_LE(replayed.as_of_ms, before);
}

TEST_F(BackupLog, NothingIsSentWhileNothingIsWritten) {
  Ship();
  Put("row", "v");
  AwaitShipped();
  const uint64_t segments = shipper_->figures().segments;
  AwaitShipped();
  EXPECT_EQ(shipper_->figures().segments, segments);
}

TEST_F(BackupLog, AMissingSegmentIsNoticed) {
  Ship();
  for (int i = 0; i < 3; ++i) {
    Put("row", std::to_string(i));
    AwaitShipped();
  }
  shipper_.reset();
  ASSERT_OK_AND_ASSIGN(const auto segments, backup::ListAll(*blobs_, backup::kLogPrefix));
  ASSERT_GE(segments.size(), 3u);
  ASSERT_OK(blobs_->Delete(segments[1].name));
  ASSERT_OK_AND_ASSIGN(const auto found, backup::FindBackupBefore(*blobs_, WallClockMs()));
  const Manifest& base = found.manifest;
  EXPECT_THAT(backup::RestoreBackup(base, *blobs_, dir_ / "restored", nullptr,
                                    [&](const fs::path& folder) {
                                      return backup::ReplayLog(
                                                 base, *blobs_, WallClockMs(), folder,
                                                 BuiltInBackendTypes().Find(kRocksDb)->open_replay)
                                          .status();
                                    }),
              FailsWith(StatusCode::kDataLoss, "missing"));
  EXPECT_FALSE(fs::exists(dir_ / "restored/KVSTORE"));
  EXPECT_FALSE(fs::exists(dir_ / "restored/rocksdb"));
}

TEST_F(BackupLog, AGapBeginsANewChain) {
  Ship();
  // Another process puts the next segment of the chain.
  ASSERT_OK_AND_ASSIGN(const auto backups, backup::ListBackups(*blobs_));
  AwaitShipped();
  ASSERT_OK_AND_ASSIGN(const auto segments, backup::ListAll(*blobs_, backup::kLogPrefix));
  ASSERT_OK(
      blobs_
          ->Put(backup::SegmentBlob(backups.live.back(), segments.size() + 1), "another", PutMode::kIfAbsent)
          .status());
  Put("row", "v");
  ASSERT_TRUE(Eventually([&] { return shipper_->figures().chains == 2; }));
  const uint64_t at = Now();
  Replayed replayed;
  const auto restored = RestoreAt(at, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "v");
}

TEST_F(BackupLog, APruneDeletesTheLogsOfBackupsThatAreGone) {
  Ship();
  Put("row", "old");
  AwaitShipped();
  shipper_.reset();
  Ship();
  Put("row", "new");
  AwaitShipped();
  ASSERT_OK(backup::PruneBackups(*blobs_, 1).status());
  const auto chains = [&] {
    std::set<std::string> found;
    const auto listed = backup::ListAll(*blobs_, backup::kLogPrefix);
    for (const auto& blob : *listed) found.insert(std::string(backup::PartsOfSegment(blob.name).first));
    return found.size();
  };
  EXPECT_EQ(chains(), 2u);
  shipper_.reset();
  ShiftWallClock(static_cast<int64_t>(backup::kGraceMs) + 60'000);
  ASSERT_OK(backup::PruneBackups(*blobs_, 1).status());
  ShiftWallClock(0);
  EXPECT_EQ(chains(), 1u);
  Replayed replayed;
  const auto restored = RestoreAt(WallClockMs(), replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "new");
}

}  // namespace
}  // namespace kvstore
