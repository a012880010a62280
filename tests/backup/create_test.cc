#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backup/layout.h"
#include "backup/prune.h"
#include "backup/verify.h"
#include "catalog/shared_nodes.h"
#include "kvstore_api/call_scope.h"
#include "tests/backup/fake_store.h"
#include "tests/support/faulty_blobs.h"

/// Tests of what a create sends, what it relies on, and what it leaves when it fails.
namespace kvstore {
namespace {

using absl::StatusCode;
using backup::kHourMs;
using backup::Manifest;
using backup::VerifyDepth;
using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FailsWith;
using testing::FakeStore;
using testing::FaultyBlobs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Returns the problems of a backup, every byte of which is read.
std::vector<std::string> Problems(const Manifest& manifest, BlobStore& blobs) {
  const auto verified = VerifyBackup(manifest, blobs, VerifyDepth::kBytes);
  EXPECT_OK(verified);
  return verified.ok() ? verified->problems : std::vector<std::string>{"could not be verified"};
}

class BackupCreate : public BackupTest {};

TEST_F(BackupCreate, ABackupIsRestoredAsItWas) {
  const Manifest made = MustCreate();
  EXPECT_THAT(Live(), ElementsAre(made.id));
  EXPECT_EQ(made.files.size(), store_.files().size());
  EXPECT_EQ(made.sent_objects, store_.files().size());
  EXPECT_EQ(made.sent_bytes, made.TotalBytes());
  EXPECT_EQ(made.sequence, 42u);
  EXPECT_EQ(made.engine, "fake 1");
  ASSERT_OK_AND_ASSIGN(const Manifest read, backup::ReadManifest(*blobs_, made.id));
  EXPECT_EQ(read, made);
  EXPECT_EQ(Restored(read), store_.files());
}

TEST_F(BackupCreate, AnEntryOfASharedCatalogThatCannotBeReadIsFound) {
  const auto problems = [&](const SharedNodes& nodes) {
    store_.Put(kSharedNodesFile, EncodeSharedNodes(nodes));
    return Problems(MustCreate(), *blobs_);
  };
  EXPECT_THAT(problems({{"dropped/x", "1"}}), IsEmpty());
  EXPECT_THAT(problems({{"datasets/events", "damaged"}}), ElementsAre(HasSubstr("datasets/events: ")));
}

TEST_F(BackupCreate, TheManifestIsPutLast) {
  FaultyBlobs blobs(*blobs_);
  ASSERT_OK_AND_ASSIGN(const Manifest made, Create(blobs));
  const auto puts = blobs.puts();
  ASSERT_EQ(puts.size(), store_.files().size() + 1);
  EXPECT_EQ(puts.back(), "backups/" + made.id + ".json");
}

TEST_F(BackupCreate, TheSecondBackupSendsOnlyWhatIsNew) {
  MustCreate();
  store_.PutTable(13, "a new table");
  store_.Put("rocksdb/MANIFEST-000005", "the tables are 10, 11 and 13");
  FaultyBlobs blobs(*blobs_);
  ASSERT_OK_AND_ASSIGN(const Manifest made, Create(blobs));
  EXPECT_EQ(blobs.puts().size(), 3u);  // the table, the engine's manifest, and our own
  EXPECT_EQ(made.sent_objects, 2u);
  EXPECT_EQ(Restored(made), store_.files());
  // Nothing has changed since: only the manifest is sent.
  EXPECT_EQ(MustCreate().sent_objects, 0u);
}

TEST_F(BackupCreate, TablesThatAreThereAreNotRead) {
  MustCreate();
  // The bytes of a table are those that its unique ID was given to, so nothing looks at these.
  store_.PutTable(10, std::string(1000, 'x'));
  const Manifest second = MustCreate();
  EXPECT_EQ(second.sent_objects, 0u);
  EXPECT_EQ(Restored(second).at("rocksdb/000010.sst"), std::string(1000, 'a'));
}

TEST_F(BackupCreate, FilesOfTheSameBytesAreOneObject) {
  store_.Put("rocksdb/000020.log", "");
  store_.Put("rocksdb/000021.log", "");
  const Manifest made = MustCreate();
  EXPECT_EQ(made.sent_objects, store_.files().size() - 1);
  EXPECT_EQ(Restored(made), store_.files());
}

TEST_F(BackupCreate, AfterAFailureTheNextOneGoesOn) {
  std::atomic<int> puts{0};
  FaultyBlobs failing(*blobs_, [&](std::string_view call, std::string_view) {
    return call == "put" && ++puts > 4 ? absl::UnavailableError("status 503") : absl::OkStatus();
  });
  EXPECT_THAT(Create(failing), FailsWith(StatusCode::kUnavailable, "503"));
  EXPECT_THAT(Live(), IsEmpty());
  EXPECT_EQ(CountObjects(), 4u);
  const Manifest made = MustCreate();
  EXPECT_EQ(made.sent_objects, store_.files().size() - 4);
  EXPECT_EQ(Restored(made), store_.files());
}

TEST_F(BackupCreate, AFullDestinationListsNothingIncomplete) {
  const Manifest first = MustCreate();
  store_.PutTable(13, "more than fits");
  FaultyBlobs full(*blobs_, [](std::string_view call, std::string_view) {
    return call == "put" ? absl::ResourceExhaustedError("the bucket is full") : absl::OkStatus();
  });
  EXPECT_THAT(Create(full), FailsWith(StatusCode::kResourceExhausted, "full"));
  EXPECT_THAT(Live(), ElementsAre(first.id));
  EXPECT_THAT(Problems(first, *blobs_), IsEmpty());
}

TEST_F(BackupCreate, WithoutAListNothingIsSent) {
  FaultyBlobs blobs(*blobs_, [](std::string_view call, std::string_view) {
    return call == "list" ? absl::UnavailableError("status 503") : absl::OkStatus();
  });
  EXPECT_THAT(Create(blobs), FailsWith(StatusCode::kUnavailable, "503"));
  EXPECT_THAT(blobs.puts(), IsEmpty());
}

TEST_F(BackupCreate, AnOldObjectThatNoBackupNamesIsSentAgainUnderAnotherName) {
  FaultyBlobs failing(*blobs_, [](std::string_view call, std::string_view name) {
    return call == "put" && name.starts_with("backups/") ? absl::UnavailableError("503") : absl::OkStatus();
  });
  EXPECT_THAT(Create(failing), FailsWith(StatusCode::kUnavailable, "503"));
  // A prune may delete these objects while the next create runs.
  ShiftWallClock(static_cast<int64_t>(backup::kReuseMs + kHourMs));
  const Manifest made = MustCreate();
  EXPECT_EQ(made.sent_objects, store_.files().size());
  for (const auto& file : made.files) EXPECT_TRUE(file.blob.ends_with("." + made.id)) << file.blob;
  EXPECT_EQ(Restored(made), store_.files());
  // The next one relies on them under these names.
  EXPECT_EQ(MustCreate().sent_objects, 0u);
}

TEST_F(BackupCreate, AnObjectOfAnotherSizeIsNotRelied) {
  ASSERT_OK(blobs_->Put(backup::TableBlob(FakeStore::UniqueId(10)), "cut off", PutMode::kIfAbsent));
  ASSERT_OK(blobs_->Put(backup::TableBlob(FakeStore::UniqueId(11)) + ".20261124T031459Z-1a2b3c4d", "cut off",
                        PutMode::kIfAbsent));
  EXPECT_EQ(Restored(MustCreate()), store_.files());
}

TEST_F(BackupCreate, AnObjectThatWasLostIsSentAgain) {
  const Manifest first = MustCreate();
  ASSERT_OK(blobs_->Delete(first.Find("rocksdb/000010.sst")->blob));
  EXPECT_FALSE(Problems(first, *blobs_).empty());
  const Manifest second = MustCreate();
  EXPECT_EQ(second.sent_objects, 1u);
  EXPECT_THAT(Problems(second, *blobs_), IsEmpty());
  EXPECT_THAT(Problems(first, *blobs_), IsEmpty());
}

TEST_F(BackupCreate, ADamagedManifestDoesNotKeepOthersFromBeingMade) {
  const Manifest first = MustCreate();
  ASSERT_OK(blobs_->Put(backup::ManifestBlob(first.id), "{", PutMode::kReplace));
  EXPECT_EQ(Restored(MustCreate()), store_.files());
}

TEST_F(BackupCreate, OneThatTakesTooLongIsNotKept) {
  SetFailPointHook([](std::string_view point) {
    if (point == "backup-checkpoint") ShiftWallClock(static_cast<int64_t>(backup::kMaxCreateMs + kHourMs));
  });
  EXPECT_THAT(Create(*blobs_), FailsWith(StatusCode::kDeadlineExceeded, "took longer than 24 hours"));
  EXPECT_THAT(Live(), IsEmpty());
}

TEST_F(BackupCreate, ABaseThatIsPrunedMeanwhileKeepsItsObjects) {
  const Manifest base = MustCreate();
  std::atomic<bool> pruned{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "backup-manifest" || pruned.exchange(true)) return;
    EXPECT_OK(blobs_->Put(backup::RemovedBlob(base.id), "", PutMode::kIfAbsent));
    // The base is old by now, but it was removed only just.
    ShiftWallClock(static_cast<int64_t>(backup::kMaxCreateMs));
    EXPECT_OK(backup::PruneBackups(*blobs_, 1));
  });
  const Manifest made = MustCreate();
  EXPECT_THAT(Live(), ElementsAre(made.id));
  EXPECT_THAT(Problems(made, *blobs_), IsEmpty());
  ShiftWallClock(static_cast<int64_t>(100 * kHourMs));
  EXPECT_OK(backup::PruneBackups(*blobs_, 1));
  EXPECT_THAT(Problems(made, *blobs_), IsEmpty());
}

TEST_F(BackupCreate, APruneThatListedLongAgoDoesNotDeleteWhatIsSentMeanwhile) {
  FaultyBlobs failing(*blobs_, [](std::string_view call, std::string_view name) {
    return call == "put" && name.starts_with("backups/") ? absl::UnavailableError("503") : absl::OkStatus();
  });
  EXPECT_THAT(Create(failing), FailsWith(StatusCode::kUnavailable, "503"));
  ShiftWallClock(static_cast<int64_t>(backup::kGraceMs + kHourMs));
  // Two prunes have listed the same objects, and the other one is faster. The objects that a create sends
  // then are not those that the slow one has listed.
  std::atomic<bool> is_first{true};
  Manifest made;
  FaultyBlobs slow(*blobs_, [&](std::string_view call, std::string_view) {
    if (call != "delete" || !is_first.exchange(false)) return absl::OkStatus();
    EXPECT_OK(backup::PruneBackups(*blobs_, 1));
    EXPECT_EQ(CountObjects(), 0u);
    made = MustCreate();
    return absl::OkStatus();
  });
  EXPECT_OK(backup::PruneBackups(slow, 1));
  EXPECT_FALSE(is_first);
  EXPECT_THAT(Problems(made, *blobs_), IsEmpty());
  EXPECT_EQ(Restored(made), store_.files());
}

TEST_F(BackupCreate, AFileThatChangesMeanwhileIsNotRelied) {
  MustCreate();
  // Only this file is sent, so the step comes after its checksum was computed.
  store_.Put("rocksdb/000012.log", "what is read");
  std::atomic<bool> is_changed{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "backup-object" || is_changed.exchange(true)) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      if (entry.path().filename() == "000012.log") std::ofstream(entry.path()) << "what is sent";
    }
  });
  EXPECT_THAT(Create(*blobs_), FailsWith(StatusCode::kDataLoss, "changed while it was backed up"));
  SetFailPointHook(nullptr);
  EXPECT_EQ(Restored(MustCreate()), store_.files());
}

TEST_F(BackupCreate, AManifestThatCouldNotBeReadAgainIsNotPut) {
  store_.Put("migrations/a b.json", "{}");
  EXPECT_THAT(Create(*blobs_), FailsWith(StatusCode::kInternal, "could not be read again"));
  EXPECT_THAT(Live(), IsEmpty());
}

TEST_F(BackupCreate, TheNewestIsTheOneThatBeganLastWhateverTheClocks) {
  ShiftWallClock(static_cast<int64_t>(24 * 365 * kHourMs));
  const Manifest ahead = MustCreate();
  ShiftWallClock(0);
  // Two in one second, too.
  const Manifest second = MustCreate();
  const Manifest third = MustCreate();
  EXPECT_THAT(Live(), ElementsAre(ahead.id, second.id, third.id));
  EXPECT_LT(second.began_ms, ahead.began_ms);
  ASSERT_OK_AND_ASSIGN(const auto pruned, backup::PruneBackups(*blobs_, 1));
  EXPECT_THAT(pruned.removed, ElementsAre(ahead.id, second.id));
}

TEST_F(BackupCreate, AClockThatIsSetBackMeanwhileMakesNoBackupThatEndsBeforeItBegan) {
  SetFailPointHook([](std::string_view point) {
    if (point == "backup-checkpoint") ShiftWallClock(-static_cast<int64_t>(kHourMs));
  });
  const Manifest made = MustCreate();
  EXPECT_GE(made.finished_ms, made.began_ms);
}

TEST_F(BackupCreate, SeveralAtOnceAndPrunesBesideThem) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 5;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) EXPECT_OK(Create(*blobs_));
      --running;
    });
  }
  while (running > 0) EXPECT_OK(backup::PruneBackups(*blobs_, 2));
  for (std::thread& thread : threads) thread.join();
  // However many were made, only the first ones that began together may each have sent everything.
  EXPECT_LE(CountObjects(), kThreads * store_.files().size());
  for (const std::string& id : Live()) {
    ASSERT_OK_AND_ASSIGN(const Manifest manifest, backup::ReadManifest(*blobs_, id));
    EXPECT_EQ(Restored(manifest), store_.files());
  }
}

TEST_F(BackupCreate, ItsProgressEndsWithAllBytesAndCanStopIt) {
  uint64_t last = 0;
  uint64_t all = 0;
  ASSERT_OK_AND_ASSIGN(const Manifest made, backup::CreateBackup(store_.CheckpointsIn(dir_.path()), *blobs_,
                                                                 [&](uint64_t done, uint64_t total) {
                                                                   last = done;
                                                                   all = total;
                                                                   return true;
                                                                 }));
  EXPECT_EQ(last, made.TotalBytes());
  EXPECT_EQ(all, made.TotalBytes());
  const auto stop = [](uint64_t, uint64_t) { return false; };
  EXPECT_THAT(backup::CreateBackup(store_.CheckpointsIn(dir_.path()), *blobs_, stop),
              FailsWith(StatusCode::kCancelled, "stopped"));
}

TEST_F(BackupCreate, ItReadsNoFasterThanItMay) {
  const auto began = std::chrono::steady_clock::now();
  constexpr uint64_t kBytesPerS = 20'000;
  ASSERT_OK_AND_ASSIGN(const Manifest made,
                       backup::CreateBackup(store_.CheckpointsIn(dir_.path()), *blobs_, nullptr, kBytesPerS));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took.count(), static_cast<double>(made.sent_bytes) / kBytesPerS);
  EXPECT_EQ(Restored(made), store_.files());
}

TEST_F(BackupCreate, OneThatIsSlowCanBeCancelled) {
  std::atomic<bool> cancelled{false};
  SetFailPointHook([&](std::string_view point) {
    if (point == "backup-object") cancelled = true;
  });
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  // It would take half a minute and longer.
  EXPECT_THAT(backup::CreateBackup(store_.CheckpointsIn(dir_.path()), *blobs_, nullptr, 100),
              FailsWith(StatusCode::kCancelled, ""));
  EXPECT_THAT(Live(), IsEmpty());
}

TEST_F(BackupCreate, IdsSortByTime) {
  EXPECT_THAT(backup::NewBackupId(0), StartsWith("19700101T000000Z-"));
  EXPECT_THAT(backup::NewBackupId(1'795'490'099'999), StartsWith("20261124T031459Z-"));
  EXPECT_OK(backup::CheckBackupId(backup::NewBackupId(1)));
  EXPECT_THAT(backup::NewBackupId(1'795'490'099'999, "20261124T031459Z-1a2b3c4d"),
              StartsWith("20261124T031500Z-"));
  EXPECT_THAT(backup::NewBackupId(1'795'490'099'999, "20271231T235959Z-1a2b3c4d"),
              StartsWith("20280101T000000Z-"));
  // Nothing sorts after the last, and what is no time says nothing.
  for (const char* newest : {"99991231T235959Z-1a2b3c4d", "20279931T235959Z-1a2b3c4d", "x", ""}) {
    EXPECT_THAT(backup::NewBackupId(1'795'490'099'999, newest), StartsWith("20261124T031459Z-")) << newest;
  }
  for (const char* id : {"", "x", "../../etc/passwd", "20261124T031459Z-1a2b3c4", "20261124T031459Z-1a2b3c4D",
                         "20261124T031459Z-1a2b3c4d/"}) {
    EXPECT_THAT(backup::CheckBackupId(id), FailsWith(StatusCode::kInvalidArgument, "an ID looks like")) << id;
  }
}

}  // namespace
}  // namespace kvstore
