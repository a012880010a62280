#include "backup/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "backup/layout.h"
#include "backup/verify.h"
#include "tests/backup/fake_store.h"
#include "tests/support/faulty_blobs.h"

/// Tests of what a prune removes and when, and of what a verification finds.
namespace kvstore {
namespace {

using absl::StatusCode;
using backup::Manifest;
using backup::PruneBackups;
using backup::Pruned;
using backup::VerifyBackup;
using backup::VerifyDepth;
using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kGrace = static_cast<int64_t>(backup::kGraceMs + backup::kHourMs);

class BackupPrune : public BackupTest {
 protected:
  Pruned MustPrune(size_t keep) {
    auto pruned = PruneBackups(*blobs_, keep);
    EXPECT_OK(pruned);
    return pruned.ok() ? *std::move(pruned) : Pruned();
  }
  std::vector<std::string> Problems(const Manifest& manifest, VerifyDepth depth) {
    auto verified = VerifyBackup(manifest, *blobs_, depth);
    EXPECT_OK(verified);
    return verified.ok() ? verified->problems : std::vector<std::string>{"could not be verified"};
  }
  /// Makes a backup a second after the one before, so that their IDs sort.
  Manifest NextBackup() {
    shift_ms_ += 1000;
    ShiftWallClock(shift_ms_);
    return MustCreate();
  }

  int64_t shift_ms_ = 0;
};

TEST_F(BackupPrune, ItKeepsTheNewest) {
  const Manifest first = NextBackup();
  const Manifest second = NextBackup();
  const Manifest third = NextBackup();
  EXPECT_THAT(MustPrune(3).removed, IsEmpty());
  EXPECT_THAT(MustPrune(1).removed, ElementsAre(first.id, second.id));
  EXPECT_THAT(Live(), ElementsAre(third.id));
  EXPECT_THAT(MustPrune(1).removed, IsEmpty());
  EXPECT_THAT(PruneBackups(*blobs_, 0), FailsWith(StatusCode::kInvalidArgument, "at least one"));
}

TEST_F(BackupPrune, ObjectsGoWhenTheGracePeriodIsOver) {
  const Manifest first = NextBackup();
  store_.RemoveTable(10);
  store_.PutTable(13, "in its place");
  const Manifest second = NextBackup();
  const Pruned at_once = MustPrune(1);
  EXPECT_THAT(at_once.removed, ElementsAre(first.id));
  EXPECT_EQ(at_once.deleted_objects, 0u);
  EXPECT_EQ(at_once.waiting_objects, 1u);
  EXPECT_EQ(at_once.waiting_bytes, 1000u);
  // A backup that was removed can still be restored, by its ID, as long as its objects are there.
  ASSERT_OK_AND_ASSIGN(const Manifest removed, backup::ReadManifest(*blobs_, first.id));
  EXPECT_EQ(Restored(removed).count("rocksdb/000010.sst"), 1u);

  ShiftWallClock(kGrace);
  const Pruned later = MustPrune(1);
  EXPECT_EQ(later.deleted_objects, 1u);
  EXPECT_EQ(later.deleted_bytes, 1000u);
  EXPECT_EQ(later.waiting_objects, 0u);
  EXPECT_THAT(backup::ReadManifest(*blobs_, first.id), FailsWith(StatusCode::kNotFound, "no backup"));
  EXPECT_THAT(*backup::ListAll(*blobs_, "removed/"), IsEmpty());
  EXPECT_EQ(Restored(second), store_.files());
  EXPECT_EQ(MustPrune(1).deleted_objects, 0u);
}

TEST_F(BackupPrune, WhatACreateLeftThatFailedIsDeletedLater) {
  const Manifest kept = NextBackup();
  ASSERT_OK(blobs_->Put("objects/table-left-over", "x", PutMode::kIfAbsent));
  EXPECT_EQ(MustPrune(1).deleted_objects, 0u);
  ShiftWallClock(kGrace);
  EXPECT_EQ(MustPrune(1).deleted_objects, 1u);
  EXPECT_EQ(Restored(kept), store_.files());
}

TEST_F(BackupPrune, NothingIsDeletedWhileAManifestCannotBeRead) {
  const Manifest first = NextBackup();
  store_.RemoveTable(10);
  const Manifest second = NextBackup();
  const std::string text = *blobs_->Get(backup::ManifestBlob(first.id), 1 << 20);
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(first.id), "damaged", PutMode::kReplace));
  ShiftWallClock(kGrace);
  EXPECT_THAT(PruneBackups(*blobs_, 2), FailsWith(StatusCode::kDataLoss, "no object was deleted"));
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(first.id), text, PutMode::kReplace));
  EXPECT_EQ(Restored(first).size(), store_.files().size() + 1);
  EXPECT_OK(PruneBackups(*blobs_, 2));
}

TEST_F(BackupPrune, GoodBackupsAreNotRemovedInFavourOfOneThatCannotBeRead) {
  const Manifest good = NextBackup();
  const Manifest newest = NextBackup();
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(newest.id), "damaged", PutMode::kReplace));
  EXPECT_THAT(PruneBackups(*blobs_, 1), FailsWith(StatusCode::kDataLoss, "no backup was removed"));
  EXPECT_THAT(Live(), ElementsAre(good.id, newest.id));
}

TEST_F(BackupPrune, WhatARemovedBackupNeedsThatCannotBeReadStaysForItsGracePeriod) {
  const Manifest base = NextBackup();
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::milliseconds(kGrace);
  for (const backup::BackedUpFile& file : base.files) {
    std::filesystem::last_write_time(PathOf(file.blob), long_ago);
  }
  // It is good when a create relies on it, and is damaged and removed while that runs.
  SetFailPointHook([&](std::string_view point) {
    if (point != "backup-manifest") return;
    SetFailPointHook(nullptr);
    EXPECT_OK(blobs_->Put(backup::ManifestBlob(base.id), "damaged", PutMode::kReplace));
    EXPECT_OK(blobs_->Put(backup::RemovedBlob(base.id), "", PutMode::kIfAbsent));
    EXPECT_EQ(MustPrune(1).deleted_objects, 0u);
  });
  const Manifest made = MustCreate();
  EXPECT_EQ(made.sent_objects, 0u);
  EXPECT_EQ(Restored(made), store_.files());
}

TEST_F(BackupPrune, ABackupThatAnotherPruneDeletesMeanwhileIsNoError) {
  const Manifest first = NextBackup();
  const Manifest second = NextBackup();
  // Between the list of manifests and that of marks, the other prune deletes both, so this one takes it for
  // one that is there.
  testing::FaultyBlobs blobs(*blobs_, [&](std::string_view call, std::string_view name) {
    return call == "list" && name == "removed/" ? blobs_->Delete(backup::ManifestBlob(first.id))
                                                : absl::OkStatus();
  });
  EXPECT_OK(PruneBackups(blobs, 2));
  EXPECT_EQ(Restored(second), store_.files());
}

TEST_F(BackupPrune, ItLeavesAloneWhatIsNotABackup) {
  NextBackup();
  ASSERT_OK(blobs_->Put("backups/notes.json", "mine", PutMode::kIfAbsent));
  ASSERT_OK(blobs_->Put("other/file", "mine", PutMode::kIfAbsent));
  ShiftWallClock(kGrace);
  EXPECT_OK(PruneBackups(*blobs_, 1));
  EXPECT_EQ(*blobs_->Get("backups/notes.json", 10), "mine");
  EXPECT_EQ(*blobs_->Get("other/file", 10), "mine");
  EXPECT_EQ(Live().size(), 1u);
}

TEST_F(BackupPrune, VerifyFindsMoreTheDeeperItLooks) {
  const Manifest made = MustCreate();
  for (const auto depth : {VerifyDepth::kObjects, VerifyDepth::kSchema, VerifyDepth::kBytes}) {
    EXPECT_THAT(Problems(made, depth), IsEmpty());
  }
  const auto problem = [](const std::string& text) { return ElementsAre(HasSubstr(text)); };
  // One byte of a table.
  const std::string table = PathOf(made.Find("rocksdb/000010.sst")->blob);
  std::ofstream(table, std::ios::binary) << std::string(999, 'a') << 'x';
  EXPECT_THAT(Problems(made, VerifyDepth::kSchema), IsEmpty());
  EXPECT_THAT(Problems(made, VerifyDepth::kBytes), problem("restores to rocksdb/000010.sst, is damaged"));
  // Its end.
  std::ofstream(table, std::ios::binary) << "short";
  EXPECT_THAT(Problems(made, VerifyDepth::kObjects), problem("rocksdb/000010.sst, has 5 bytes, not 1000"));
  std::ofstream(table, std::ios::binary) << std::string(1000, 'a');
  // One byte of the catalog.
  const std::string catalog = PathOf(made.Find("catalog.json")->blob);
  std::string text = testing::TextOfFile(catalog);
  std::ofstream(catalog, std::ios::binary) << std::string(text.size(), ' ');
  EXPECT_THAT(Problems(made, VerifyDepth::kObjects), IsEmpty());
  EXPECT_THAT(Problems(made, VerifyDepth::kSchema), problem("restores to catalog.json, is damaged"));
  std::filesystem::remove(catalog);
  EXPECT_THAT(Problems(made, VerifyDepth::kSchema), problem("restores to catalog.json, is missing"));
}

TEST_F(BackupPrune, VerifyFindsEmptyFilesThatMayNotBeEmpty) {
  store_.Put("catalog.json", "");
  store_.Put("rocksdb/CURRENT", "");
  EXPECT_EQ(Problems(MustCreate(), VerifyDepth::kSchema).size(), 2u);
}

TEST_F(BackupPrune, VerifyComparesWhatEachFileSaysOfAnObject) {
  Manifest made = MustCreate();
  ASSERT_EQ(made.files.back().path, "rocksdb/MANIFEST-000005");
  backup::BackedUpFile other = made.files.back();
  other.path = "rocksdb/MANIFEST-000006";
  other.checksum = std::string(64, 'f');
  made.files.push_back(other);
  EXPECT_THAT(Problems(made, VerifyDepth::kBytes),
              ElementsAre(HasSubstr("restores to rocksdb/MANIFEST-000006, is damaged")));
}

TEST_F(BackupPrune, VerifyFindsACatalogThatWasDamagedBeforeTheBackup) {
  store_.Put("catalog.json", "{}");
  store_.Put("rocksdb/CURRENT", "MANIFEST-000099\n");
  const Manifest made = MustCreate();
  EXPECT_THAT(Problems(made, VerifyDepth::kObjects), IsEmpty());
  const auto problems = Problems(made, VerifyDepth::kSchema);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0] + problems[1], HasSubstr("restores to catalog.json, does not decode"));
  EXPECT_THAT(problems[0] + problems[1], HasSubstr("names a file that the backup does not have"));
}

}  // namespace
}  // namespace kvstore
