#include "cli/served_backups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/fuzz/fuzz_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests of what operators ask a server about backups, by backups of a dataset.
namespace kvstore::cli {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ServedBackupsTest : public ::testing::Test {
 protected:
  ServedBackupsTest() {
    EXPECT_OK(store_->CreateDataset({.name = "events"}));
    Put("a");
  }
  void Put(std::string_view value) const {
    const CellWrite cell{"c", value};
    EXPECT_OK(store_->PutRow("events", "row", {&cell, 1}, {}).status());
  }
  std::string Make() {
    auto made = backups_.CreateBackup("events", nullptr);
    EXPECT_OK(made.status());
    return made.ok() ? made->id : "";
  }

  const testing::TempDir dir_;
  const std::unique_ptr<KVStore> store_ = testing::OpenEmbedded(dir_ / "store");
  const BackupConfig config_{.to = "file:" + (dir_ / "backups").string()};
  ServedBackups backups_{dynamic_cast<Router&>(*store_), config_,
                         absl::UnimplementedError("there is no embedded engine"), nullptr};
};

TEST_F(ServedBackupsTest, TheNewestAreListedFirst) {
  EXPECT_THAT(backups_.ListBackups("events", 10)->backups, IsEmpty());
  const std::string first = Make();
  Put("b");
  const std::string second = Make();
  ASSERT_OK_AND_ASSIGN(const auto all, backups_.ListBackups("events", 10));
  ASSERT_THAT(all.backups, SizeIs(2));
  EXPECT_EQ(all.backups[0].id, second);
  EXPECT_EQ(all.backups[1].id, first);
  EXPECT_FALSE(all.more);
  EXPECT_EQ(all.url, all.backups[0].url);
  ASSERT_OK_AND_ASSIGN(const auto newest, backups_.ListBackups("events", 1));
  EXPECT_THAT(newest.backups, SizeIs(1));
  EXPECT_TRUE(newest.more);
  // Those of the whole store, of which there are none.
  EXPECT_THAT(backups_.ListBackups("", 10)->backups, IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(backups_.ListBackups("../events", 10).status()));
}

TEST_F(ServedBackupsTest, OneThatCannotBeReadHidesNoOthers) {
  const std::string good = Make();
  std::filesystem::path folder;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir_ / "backups")) {
    if (file.path().filename() == good + ".json") folder = file.path().parent_path();
  }
  ASSERT_FALSE(folder.empty());
  std::ofstream(folder / "20000101T000000Z-00000000.json") << "{";
  ASSERT_OK_AND_ASSIGN(const auto all, backups_.ListBackups("events", 10));
  ASSERT_THAT(all.backups, SizeIs(1));
  EXPECT_EQ(all.backups[0].id, good);
  EXPECT_THAT(all.unreadable, ::testing::ElementsAre("20000101T000000Z-00000000"));
}

TEST_F(ServedBackupsTest, ABackupThatIsNotWholeIsFound) {
  EXPECT_TRUE(absl::IsNotFound(backups_.VerifyBackup("events", "", false, nullptr).status()));
  const std::string id = Make();
  ASSERT_OK_AND_ASSIGN(const auto whole, backups_.VerifyBackup("events", "", true, nullptr));
  EXPECT_EQ(whole.id, id);
  EXPECT_THAT(whole.problems, IsEmpty());
  EXPECT_GT(whole.read_bytes, 0u);

  // A byte of its data is another one: only who reads everything sees it.
  std::filesystem::path data;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir_ / "backups")) {
    if (file.is_regular_file() && file.path().string().find("/objects/") != std::string::npos)
      data = file.path();
  }
  ASSERT_FALSE(data.empty());
  std::filesystem::permissions(data, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  {
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    const char other = static_cast<char>(file.get() ^ 1);
    file.seekp(0);
    file.put(other);
  }
  EXPECT_THAT(backups_.VerifyBackup("events", id, true, nullptr)->problems, Not(IsEmpty()));
  std::filesystem::remove(data);
  EXPECT_THAT(backups_.VerifyBackup("events", id, false, nullptr)->problems, Not(IsEmpty()));
  EXPECT_TRUE(absl::IsNotFound(
      backups_.VerifyBackup("events", "20000101T000000Z-00000000", false, nullptr).status()));
}

TEST_F(ServedBackupsTest, TheLogBehindABackupOfTheStoreIsVerified) {
  auto& router = dynamic_cast<Router&>(*store_);
  const backup::CheckpointMaker checkpoint = [&router] {
    return (*router.keeper().FindBackend("rocksdb"))->MakeCheckpoint();
  };
  ServedBackups backups(router, config_, checkpoint, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto made, backups.CreateBackup("", nullptr));
  EXPECT_THAT(backups.VerifyBackup("", "", true, nullptr)->problems, IsEmpty());
  const std::filesystem::path log = dir_ / "backups/log" / made.id;
  std::filesystem::create_directories(log);
  std::ofstream(log / "00000002") << "no segment";
  // The first segment is missing, and the second one is damaged.
  EXPECT_THAT(backups.VerifyBackup("", "", false, nullptr)->problems, SizeIs(1));
  EXPECT_THAT(backups.VerifyBackup("", "", true, nullptr)->problems, SizeIs(2));
}

TEST_F(ServedBackupsTest, OneAtATimeIsReadAndItsCallerCanStopIt) {
  Make();
  const auto stopped = backups_.VerifyBackup("events", "", true, [this](uint64_t, uint64_t) {
    EXPECT_TRUE(absl::IsFailedPrecondition(backups_.VerifyBackup("events", "", true, nullptr).status()));
    EXPECT_OK(backups_.VerifyBackup("events", "", false, nullptr).status());
    return false;
  });
  EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
  EXPECT_OK(backups_.VerifyBackup("events", "", true, nullptr).status());
}

}  // namespace
}  // namespace kvstore::cli
