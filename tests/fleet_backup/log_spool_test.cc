#include "fleet_backup/log_spool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "blobstore/open_blob_store.h"
#include "fleet_backup/binlog.h"
#include "tests/fleet_backup/made_chain.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests of which part of a pair's binary log is played for a time.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::PutMadeChain;

constexpr char kFirst[] = "20261124T010000Z-11111111";
constexpr char kSecond[] = "20261124T020000Z-22222222";
constexpr char kThird[] = "20261124T030000Z-33333333";

class LogSpool : public ::testing::Test {
 protected:
  /// A backup that has all transactions up to this sequence.
  static backup::Manifest BaseAt(const std::string& id, uint64_t sequence) {
    backup::Manifest manifest{.id = id, .began_ms = sequence * 1000};
    manifest.server = backup::ServerPart{.gtid = fmt::format("1-7-{}", sequence)};
    return manifest;
  }
  absl::StatusOr<SpooledLog> Spool(const backup::Manifest& base, uint64_t seconds) {
    return SpoolLog(*blobs_, base, seconds * 1000, dir_ / fmt::format("log-{}", ++spooled_));
  }
  /// The sequences of the transactions in the files.
  static std::vector<uint64_t> SequencesIn(const SpooledLog& log) {
    std::vector<uint64_t> sequences;
    for (const auto& file : log.files) {
      const auto bytes = ReadFile(file);
      EXPECT_OK(bytes);
      EXPECT_TRUE(bytes->starts_with(kBinlogMagic));
      EXPECT_OK(ReadGroups(
          std::string_view(*bytes).substr(kBinlogMagic.size()),
          [](std::string_view) { return absl::OkStatus(); },
          [&](const BinlogGroup& group) {
            sequences.push_back(group.gtid.sequence);
            return absl::OkStatus();
          }));
    }
    return sequences;
  }

  const testing::TempDir dir_;
  const std::unique_ptr<BlobStore> blobs_ = *OpenBlobStore("file:" + (dir_ / "blobs").string());
  int spooled_ = 0;
};

TEST_F(LogSpool, HasWhatIsBehindTheBackupAndBeforeTheTime) {
  PutMadeChain(*blobs_, kFirst, 10, 8);  // 11 to 18
  ASSERT_OK_AND_ASSIGN(const SpooledLog log, Spool(BaseAt(kFirst, 12), 16));
  EXPECT_THAT(SequencesIn(log), ElementsAre(13, 14, 15));
  EXPECT_EQ(log.last, "1-7-15");
  EXPECT_EQ(log.as_of_ms, 16'000u);
  EXPECT_EQ(log.transactions, 3u);
  EXPECT_FALSE(log.at_end);
  EXPECT_EQ(log.nodes, std::string("nodes of ") + kFirst);
}

TEST_F(LogSpool, ATimeBehindTheLogIsItsEnd) {
  PutMadeChain(*blobs_, kFirst, 10, 3);
  ASSERT_OK_AND_ASSIGN(const SpooledLog log, Spool(BaseAt(kFirst, 10), 1'000));
  EXPECT_THAT(SequencesIn(log), ElementsAre(11, 12, 13));
  EXPECT_TRUE(log.at_end);
  EXPECT_EQ(log.as_of_ms, 13'000u);
}

TEST_F(LogSpool, WithoutALogThereIsNothingToPlay) {
  ASSERT_OK_AND_ASSIGN(const SpooledLog log, Spool(BaseAt(kFirst, 10), 1'000));
  EXPECT_TRUE(log.files.empty());
  EXPECT_TRUE(log.at_end);
  EXPECT_EQ(log.as_of_ms, 10'000u);
  EXPECT_EQ(log.last, "1-7-10");
}

TEST_F(LogSpool, ChainsThatOverlapAreOneLog) {
  PutMadeChain(*blobs_, kFirst, 10, 5);   // 11 to 15
  PutMadeChain(*blobs_, kSecond, 12, 5);  // 13 to 17
  PutMadeChain(*blobs_, kThird, 17, 2);   // 18, 19
  ASSERT_OK_AND_ASSIGN(const SpooledLog log, Spool(BaseAt(kFirst, 10), 1'000));
  EXPECT_THAT(SequencesIn(log), ElementsAre(11, 12, 13, 14, 15, 16, 17, 18, 19));
  EXPECT_EQ(log.nodes, std::string("nodes of ") + kThird);
  // A backup whose chain was never begun is followed by that of the backup before.
  ASSERT_OK_AND_ASSIGN(const SpooledLog behind, Spool(BaseAt("20261124T013000Z-44444444", 14), 17));
  EXPECT_THAT(SequencesIn(behind), ElementsAre(15, 16));
}

TEST_F(LogSpool, AGapIsToldAndNotSkipped) {
  PutMadeChain(*blobs_, kFirst, 10, 3);   // 11 to 13
  PutMadeChain(*blobs_, kSecond, 20, 3);  // 21 to 23
  EXPECT_THAT(
      Spool(BaseAt(kFirst, 10), 22),
      FailsWith(StatusCode::kFailedPrecondition, "the latest time before it is --at 1970-01-01T00:00:13Z"));
  // A transaction that was not sent may have been committed in the same second as the last one that was.
  EXPECT_THAT(Spool(BaseAt(kFirst, 10), 14), FailsWith(StatusCode::kFailedPrecondition, "has a gap"));
  // At the time that it names, and after the gap, all is there.
  EXPECT_THAT(SequencesIn(*Spool(BaseAt(kFirst, 10), 13)), ElementsAre(11, 12));
  ASSERT_OK_AND_ASSIGN(const SpooledLog behind, Spool(BaseAt(kSecond, 20), 23));
  EXPECT_THAT(SequencesIn(behind), ElementsAre(21, 22));
  // Nor is one between a backup and the first chain.
  EXPECT_THAT(Spool(BaseAt("20261124T000000Z-00000000", 9), 12),
              FailsWith(StatusCode::kFailedPrecondition, "the backup itself, without --at"));
}

TEST_F(LogSpool, ASegmentThatIsDamagedOrMissingIsTold) {
  PutMadeChain(*blobs_, kFirst, 10, 4);
  const std::string name = fmt::format("log/{}/00000003", kFirst);
  ASSERT_OK_AND_ASSIGN(std::string bytes, blobs_->Get(name, kBlobPieceBytes));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_OK(blobs_->Put(name, bytes, PutMode::kReplace));
  EXPECT_THAT(Spool(BaseAt(kFirst, 10), 1'000), FailsWith(StatusCode::kDataLoss, name));
  // All segments that an earlier time needs are there.
  EXPECT_THAT(SequencesIn(*Spool(BaseAt(kFirst, 10), 12)), ElementsAre(11));
  ASSERT_OK(blobs_->Delete(name));
  EXPECT_THAT(Spool(BaseAt(kFirst, 10), 1'000), FailsWith(StatusCode::kDataLoss, "is missing"));
}

TEST_F(LogSpool, WhatTheServerHasIsTrimmed) {
  PutMadeChain(*blobs_, kFirst, 10, 6);
  ASSERT_OK_AND_ASSIGN(const SpooledLog log, Spool(BaseAt(kFirst, 10), 1'000));
  ASSERT_OK(TrimLog(log, "1-7-13"));
  EXPECT_THAT(SequencesIn(log), ElementsAre(14, 15, 16));
  ASSERT_OK(TrimLog(log, "1-7-13"));
  EXPECT_THAT(SequencesIn(log), ElementsAre(14, 15, 16));
}

}  // namespace
}  // namespace kvstore::fleet_backup
