#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "backup/list.h"
#include "backup/log_segment.h"
#include "backup/log_verify.h"
#include "tests/backup/log_fixture.h"

/// The log of a real store when its segments are sent late, twice, or damaged.
namespace kvstore {
namespace {

using backup::Replayed;
using backup::VerifyDepth;
using testing::BackupLog;
using testing::Eventually;
using ::testing::SizeIs;

/// Rows of 1 MiB, with which a segment is full after eight.
constexpr int kMoreThanASegment = 10;

class BackupLogLate : public BackupLog {
 protected:
  BackupLogLate() {
    fault_ = [this](std::string_view call, std::string_view name) {
      const bool fails = is_down_ && call == "put" && name.starts_with(backup::kLogPrefix);
      return fails ? absl::UnavailableError("no network") : absl::OkStatus();
    };
    lost_ = [this](std::string_view, std::string_view name) {
      const bool is_lost = name.starts_with(backup::kLogPrefix) && lose_.exchange(false);
      return is_lost ? absl::UnavailableError("reset") : absl::OkStatus();
    };
  }

  void PutMany(const std::string& dataset, const std::string& prefix) {
    const std::string value(size_t{1} << 20, 'v');
    for (int i = 0; i < kMoreThanASegment; ++i) Put(prefix + std::to_string(i), value, dataset);
  }
  /// How many rows of PutMany are there; -1 if the dataset cannot be read.
  static int Count(Router& router, const std::string& dataset, const std::string& prefix) {
    int count = 0;
    for (int i = 0; i < kMoreThanASegment; ++i) {
      const auto row = router.GetRow(dataset, prefix + std::to_string(i), {});
      if (!row.ok()) return -1;
      if (!row->items.empty()) ++count;
    }
    return count;
  }
  /// Returns a time after all writes so far, and before all that follow, also while nothing can be sent.
  static uint64_t Between() {
    AwaitMark();
    const uint64_t now = WallClockMs();
    EXPECT_TRUE(Eventually([&] { return WallClockMs() > now; }));
    return now;
  }

  std::atomic<bool> is_down_{false};
  std::atomic<bool> lose_{false};
};

TEST_F(BackupLogLate, ADatasetThatWasDroppedLaterIsWhole) {
  ASSERT_OK(router_->CreateDataset({.name = "more"}));
  Ship();
  AwaitShipped();
  const uint64_t before = shipper_->figures().segments;
  is_down_ = true;
  PutMany("rows", "early");
  PutMany("more", "early");
  const uint64_t middle = Between();
  PutMany("rows", "late");
  PutMany("more", "late");
  ASSERT_OK(router_->DropDataset("more", {}));
  AwaitMark();
  is_down_ = false;
  const uint64_t end = Now();
  EXPECT_GT(shipper_->figures().segments, before + 2);
  Replayed replayed;
  const auto in_the_middle = RestoreAt(middle, replayed);
  ASSERT_TRUE(in_the_middle);
  for (const char* dataset : {"rows", "more"}) {
    EXPECT_EQ(Count(*in_the_middle, dataset, "early"), kMoreThanASegment) << dataset;
    EXPECT_EQ(Count(*in_the_middle, dataset, "late"), 0) << dataset;
  }
  EXPECT_LE(replayed.as_of_ms, middle);
  const auto at_end = RestoreAt(end, replayed);
  ASSERT_TRUE(at_end);
  EXPECT_EQ(Count(*at_end, "rows", "late"), kMoreThanASegment);
  EXPECT_THAT(*at_end->ListDatasets(), SizeIs(1));
}

TEST_F(BackupLogLate, ADatasetIsThereFromItsCreationOn) {
  Ship();
  AwaitShipped();
  is_down_ = true;
  PutMany("rows", "first");
  const uint64_t before = Between();
  ASSERT_OK(router_->CreateDataset({.name = "more"}));
  PutMany("more", "second");
  const uint64_t with = Between();
  ASSERT_OK(router_->DropDataset("more", {}));
  PutMany("rows", "third");
  AwaitMark();
  is_down_ = false;
  const uint64_t end = Now();
  Replayed replayed;
  const auto then = RestoreAt(before, replayed);
  ASSERT_TRUE(then);
  EXPECT_THAT(*then->ListDatasets(), SizeIs(1));
  EXPECT_EQ(Count(*then, "rows", "first"), kMoreThanASegment);
  const auto later = RestoreAt(with, replayed);
  ASSERT_TRUE(later);
  EXPECT_EQ(Count(*later, "more", "second"), kMoreThanASegment);
  EXPECT_EQ(Count(*later, "rows", "third"), 0);
  const auto at_end = RestoreAt(end, replayed);
  ASSERT_TRUE(at_end);
  EXPECT_THAT(*at_end->ListDatasets(), SizeIs(1));
  EXPECT_EQ(Count(*at_end, "rows", "third"), kMoreThanASegment);
}

TEST_F(BackupLogLate, ADatasetThatTakesTheNameOfAnotherIsWholeAsTheOtherIs) {
  Ship();
  AwaitShipped();
  is_down_ = true;
  PutMany("rows", "old");
  const uint64_t middle = Between();
  // Both steps may be between the same two marks.
  ASSERT_OK(router_->DropDataset("rows", {}));
  ASSERT_OK(router_->CreateDataset({.name = "rows", .max_versions = 5}));
  PutMany("rows", "new");
  PutMany("rows", "newer");
  is_down_ = false;
  const uint64_t end = Now();
  Replayed replayed;
  const auto in_the_middle = RestoreAt(middle, replayed);
  ASSERT_TRUE(in_the_middle);
  EXPECT_EQ(Count(*in_the_middle, "rows", "old"), kMoreThanASegment);
  EXPECT_EQ(Count(*in_the_middle, "rows", "new"), 0);
  const auto at_end = RestoreAt(end, replayed);
  ASSERT_TRUE(at_end);
  EXPECT_EQ(at_end->GetDataset("rows")->max_versions, 5u);
  EXPECT_EQ(Count(*at_end, "rows", "old"), 0);
  EXPECT_EQ(Count(*at_end, "rows", "new"), kMoreThanASegment);
  EXPECT_EQ(Count(*at_end, "rows", "newer"), kMoreThanASegment);
}

TEST_F(BackupLogLate, ASegmentWhoseAnswerIsLostIsNoGap) {
  Ship();
  AwaitShipped();
  lose_ = true;
  Put("row", "lost");
  ASSERT_TRUE(Eventually([this] { return shipper_->figures().failures > 0; }));
  // Later writes follow in another segment.
  Put("row", "after");
  const uint64_t at = Now();
  EXPECT_EQ(shipper_->figures().chains, 1u);
  EXPECT_THAT(backup::ListBackups(*blobs_)->live, SizeIs(1));
  Replayed replayed;
  const auto restored = RestoreAt(at, replayed);
  ASSERT_TRUE(restored);
  EXPECT_EQ(Get(*restored, "row"), "after");
}

TEST_F(BackupLogLate, AVerificationFindsWhatTheLogLacks) {
  Ship();
  for (int i = 0; i < 3; ++i) {
    Put("row", std::to_string(i));
    AwaitShipped();
  }
  shipper_.reset();
  ASSERT_OK_AND_ASSIGN(const auto found, backup::FindBackupBefore(*blobs_, WallClockMs()));
  const auto problems = [&](VerifyDepth depth) {
    backup::Verified verified;
    EXPECT_OK(backup::VerifyLogChain(found.manifest, *blobs_, depth, verified));
    EXPECT_GT(verified.objects, 0u);
    EXPECT_EQ(verified.read_bytes > 0, depth == VerifyDepth::kBytes);
    return verified.problems;
  };
  EXPECT_THAT(problems(VerifyDepth::kObjects), SizeIs(0));
  EXPECT_THAT(problems(VerifyDepth::kBytes), SizeIs(0));
  ASSERT_OK_AND_ASSIGN(const auto segments, backup::ListAll(*blobs_, backup::kLogPrefix));
  ASSERT_GE(segments.size(), 3u);
  ASSERT_OK_AND_ASSIGN(std::string bytes, blobs_->Get(segments[1].name, kBlobPieceBytes));
  bytes.front() = static_cast<char>(bytes.front() ^ 1);
  ASSERT_OK(blobs_->Put(segments[1].name, bytes, PutMode::kReplace));
  EXPECT_THAT(problems(VerifyDepth::kObjects), SizeIs(0));
  EXPECT_THAT(problems(VerifyDepth::kBytes), ::testing::ElementsAre(::testing::HasSubstr(segments[1].name)));
  ASSERT_OK(blobs_->Delete(segments[1].name));
  const auto is_missing = ::testing::Each(::testing::HasSubstr(segments[2].name));
  EXPECT_THAT(problems(VerifyDepth::kObjects), ::testing::AllOf(SizeIs(1), is_missing));
  EXPECT_THAT(problems(VerifyDepth::kBytes), ::testing::AllOf(SizeIs(2), is_missing));
}

}  // namespace
}  // namespace kvstore
