#include "backup/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "backup/checked_line.h"
#include "backup/layout.h"
#include "backup/log_restore.h"
#include "tests/backup/fake_store.h"
#include "tests/support/faulty_blobs.h"

/// Tests of what a restore writes, and of what it refuses.
namespace kvstore {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using backup::Manifest;
using backup::RestoreBackup;
using testing::BackupTest;
using testing::FailsWith;
using testing::FaultyBlobs;

class BackupRestore : public BackupTest {};

TEST_F(BackupRestore, OnlyIntoANewOrEmptyFolder) {
  const Manifest made = MustCreate();
  fs::create_directories(dir_ / "empty");
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "empty/"));
  EXPECT_EQ(testing::FilesIn(dir_ / "empty"), store_.files());
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "new" / "deeper"));
  EXPECT_EQ(testing::FilesIn(dir_ / "new" / "deeper"), store_.files());
  EXPECT_EQ(fs::status(dir_ / "new" / "deeper").permissions(), fs::perms::owner_all);
  // A store that is there stays as it is.
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "empty"),
              FailsWith(StatusCode::kFailedPrecondition, "is a store already"));
  EXPECT_EQ(testing::FilesIn(dir_ / "empty"), store_.files());
  fs::create_directories(dir_ / "other");
  std::ofstream(dir_ / "other/notes") << "mine";
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "other"),
              FailsWith(StatusCode::kFailedPrecondition, "is not empty: it holds 'notes'"));
  std::ofstream(dir_ / "file") << "text";
  EXPECT_FALSE(RestoreBackup(made, *blobs_, dir_ / "file").ok());
  EXPECT_EQ(testing::TextOfFile(dir_ / "file"), "text");
}

TEST_F(BackupRestore, ItListsNothing) {
  const Manifest made = MustCreate();
  FaultyBlobs blobs(*blobs_, [](std::string_view call, std::string_view) {
    return call == "list" ? absl::UnavailableError("a restore lists nothing") : absl::OkStatus();
  });
  ASSERT_OK_AND_ASSIGN(const Manifest read, backup::ReadManifest(blobs, made.id));
  EXPECT_OK(RestoreBackup(read, blobs, dir_ / "restored"));
}

TEST_F(BackupRestore, WrongBytesAreFoundAndNothingIsLeft) {
  const Manifest made = MustCreate();
  const std::string blob = made.Find("rocksdb/000010.sst")->blob;
  std::ofstream(PathOf(blob), std::ios::binary) << std::string(999, 'a') << 'x';
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "restored"), FailsWith(StatusCode::kDataLoss, blob));
  EXPECT_TRUE(fs::is_empty(dir_ / "restored"));
  std::ofstream(PathOf(blob), std::ios::binary) << "cut off";
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "restored"), FailsWith(StatusCode::kDataLoss, blob));
  fs::remove(PathOf(blob));
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "restored"),
              FailsWith(StatusCode::kDataLoss, "is missing; if the backup was pruned meanwhile"));
  std::ofstream(PathOf(blob), std::ios::binary) << std::string(1000, 'a');
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "restored"));
  EXPECT_EQ(testing::FilesIn(dir_ / "restored"), store_.files());
}

TEST_F(BackupRestore, AfterAFailureTheFolderIsEmptyAgain) {
  const Manifest made = MustCreate();
  std::atomic<int> reads{0};
  FaultyBlobs failing(*blobs_, [&](std::string_view call, std::string_view) {
    return call == "read" && ++reads == 3 ? absl::UnavailableError("status 503") : absl::OkStatus();
  });
  EXPECT_THAT(RestoreBackup(made, failing, dir_ / "restored"), FailsWith(StatusCode::kUnavailable, "503"));
  EXPECT_TRUE(fs::is_empty(dir_ / "restored"));
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "restored"));
}

TEST_F(BackupRestore, TwoIntoOneFolderExcludeEachOther) {
  const Manifest made = MustCreate();
  SetFailPointHook([&](std::string_view point) {
    if (point != "restore-mark") return;
    EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "restored"),
                FailsWith(StatusCode::kFailedPrecondition, "another restore has written"));
    EXPECT_FALSE(fs::exists(dir_ / "restored/KVSTORE"));
  });
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "restored"));
  EXPECT_EQ(testing::FilesIn(dir_ / "restored"), store_.files());
}

TEST_F(BackupRestore, AStoreWhoseRestoreWasKilledAtTheVeryEndIsNotCalledUnfinished) {
  const Manifest made = MustCreate();
  EXPECT_OK(RestoreBackup(made, *blobs_, dir_ / "restored"));
  // As after a kill between the mark and the removal of this file. The store may have been written to since,
  // so nobody may be told to remove it.
  std::ofstream(dir_ / "restored/RESTORING") << "x";
  EXPECT_THAT(RestoreBackup(made, *blobs_, dir_ / "restored"),
              FailsWith(StatusCode::kFailedPrecondition, "is a store already"));
}

TEST_F(BackupRestore, LinksInTheFolderAreNotFollowed) {
  const Manifest made = MustCreate();
  fs::create_directories(dir_ / "restored");
  fs::create_symlink(dir_ / "elsewhere", dir_ / "restored/RESTORING");
  EXPECT_FALSE(RestoreBackup(made, *blobs_, dir_ / "restored").ok());
  EXPECT_FALSE(fs::exists(dir_ / "elsewhere"));
}

TEST_F(BackupRestore, ADamagedBackupKeepsNobodyFromAnOlderOne) {
  const Manifest first = MustCreate();
  const Manifest second = MustCreate();
  const uint64_t now = second.finished_ms;
  EXPECT_EQ(backup::FindBackupBefore(*blobs_, now)->manifest.id, second.id);
  const std::string blob = backup::ManifestBlob(second.id);
  // The manifest is of a newer version, and then damaged.
  for (const std::string& text :
       {backup::WithChecksumLine(R"({"format":2,"kind":"embedded"})"), std::string("{")}) {
    ASSERT_OK(blobs_->Put(blob, text, PutMode::kReplace));
    ASSERT_OK_AND_ASSIGN(const auto found, backup::FindBackupBefore(*blobs_, now));
    EXPECT_EQ(found.manifest.id, first.id);
    EXPECT_THAT(found.problem, ::testing::HasSubstr(blob));
  }
  // A store of backups that cannot be reached is another matter.
  FaultyBlobs failing(*blobs_, [&](std::string_view call, std::string_view name) {
    return call == "get" && name == blob ? absl::UnavailableError("status 503") : absl::OkStatus();
  });
  EXPECT_THAT(backup::FindBackupBefore(failing, now), FailsWith(StatusCode::kUnavailable, "503"));
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(first.id), "{", PutMode::kReplace));
  EXPECT_THAT(backup::FindBackupBefore(*blobs_, now), FailsWith(StatusCode::kDataLoss, blob));
  EXPECT_THAT(backup::FindBackupBefore(*blobs_, 0), FailsWith(StatusCode::kDataLoss, blob));
}

}  // namespace
}  // namespace kvstore
