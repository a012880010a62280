#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "assembly/open_router.h"
#include "backup/list.h"
#include "backup/restore.h"
#include "backup/verify.h"
#include "base/fail_point.h"
#include "blobstore/open_blob_store.h"
#include "idgen/object_id.h"
#include "tests/backup/units_of.h"
#include "tests/support/temp_dir.h"

/// Backups of a dataset in units, of an embedded store.
namespace kvstore {
namespace {

using absl::StatusCode;
using backup::Manifest;
using testing::BackUp;
using testing::FailsWith;
using ::testing::IsEmpty;
using testing::RestoreAs;
using testing::UnitsOf;

class DatasetBackup : public ::testing::Test {
 protected:
  void SetUp() override {
    blobs_ = *OpenBlobStore("file:" + (dir_ / "blobs").string());
    router_ = *OpenRouter({.data = dir_ / "store"});
    ASSERT_OK(router_->CreateDataset({.name = "rows", .max_versions = 3}));
  }
  void TearDown() override { SetFailPointHook(nullptr); }

  void Put(const std::string& row, const std::string& column, const std::string& value, uint64_t timestamp) {
    const CellWrite cell{column, value, timestamp};
    ASSERT_OK(router_->PutRow("rows", row, {&cell, 1}, {}));
  }
  /// Rows whose values do not compress.
  void PutMany(int rows, size_t bytes) {
    std::mt19937_64 random(1);
    for (int i = 0; i < rows; ++i) {
      std::string value(bytes, ' ');
      for (char& c : value) c = static_cast<char>(random());
      Put("row" + std::to_string(100'000 + i), "x", value, 1);
    }
  }
  Manifest MustBackUp(const std::string& dataset) {
    auto made = BackUp(*router_, dataset, *blobs_);
    EXPECT_OK(made);
    return made.ok() ? *std::move(made) : Manifest();
  }

  const testing::TempDir dir_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Router> router_;
};

TEST_F(DatasetBackup, RowsAreRestoredUnderAnotherName) {
  for (uint64_t t = 1; t <= 5; ++t) Put("r", "x", "v" + std::to_string(t), t);
  Put("r", "", "no name", 1);
  Put(std::string("\0\xff", 2), "x", std::string("\0", 1), 1);
  const Manifest made = MustBackUp("rows");
  EXPECT_EQ(made.dataset->units, 3u);
  Put("r", "y", "later", 1);
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"));
  const auto units = UnitsOf(*router_, "copy");
  EXPECT_EQ(units.size(), 3u);
  ASSERT_OK(router_->DeleteRow("rows", "r", {.columns = {{"y"}}}));
  EXPECT_EQ(units, UnitsOf(*router_, "rows"));
  EXPECT_EQ(router_->keeper().LoadEntry("copy")->spec.max_versions, 3u);
  // It serves as any other, also after a restart.
  router_.reset();
  router_ = *OpenRouter({.data = dir_ / "store"});
  EXPECT_EQ(UnitsOf(*router_, "copy"), units);
  const CellWrite cell{"z", "v", std::nullopt};
  EXPECT_OK(router_->PutRow("copy", "r", {&cell, 1}, {}));
  ASSERT_OK(router_->DropDataset("copy", {}));
}

TEST_F(DatasetBackup, ObjectsKeepTheirIdsUnlessAnotherDatasetHasTheType) {
  ASSERT_OK(router_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 5}));
  ASSERT_OK_AND_ASSIGN(const uint64_t id, router_->CreateObject("pins", R"({"a":1})", {}));
  const Manifest made = MustBackUp("pins");
  ASSERT_OK_AND_ASSIGN(const uint64_t later, router_->CreateObject("pins", R"({"b":1})", {}));
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb", 6));
  const uint64_t there = ObjectId::ValueOf(ObjectId::ShardOf(id), 6, id & ObjectId::kMaxLocal);
  EXPECT_EQ(router_->GetObject("copy", there, {})->data, R"({"a":1})");
  ASSERT_OK(router_->DropDataset("pins", {}));
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "pins", "rocksdb", 5));
  EXPECT_EQ(router_->GetObject("pins", id, {})->data, R"({"a":1})");
  EXPECT_THAT(router_->GetObject("pins", later, {}), FailsWith(StatusCode::kNotFound, ""));
  // The IDs that were given before the backup are not given again.
  for (int i = 0; i < 50; ++i) EXPECT_NE(*router_->CreateObject("pins", "{}", {}), id);
}

TEST_F(DatasetBackup, MappingsAreRestoredWithTheirCounts) {
  ASSERT_OK(router_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  for (uint64_t to = 1; to <= 1'000; ++to) ASSERT_OK(router_->AddMapping("boards", 7 + to % 3, to, to));
  const Manifest made = MustBackUp("boards");
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"));
  EXPECT_EQ(UnitsOf(*router_, "copy"), UnitsOf(*router_, "boards"));
  for (uint64_t from : {7, 8, 9})
    EXPECT_EQ(router_->CountMapping("copy", from), router_->CountMapping("boards", from));
}

TEST_F(DatasetBackup, TheSecondOneSendsLittle) {
  PutMany(30'000, 1'000);
  const Manifest first = MustBackUp("rows");
  EXPECT_GT(first.files.size(), 3u);
  EXPECT_EQ(first.sent_bytes, first.TotalBytes());
  Put("row105000", "x", "changed", 2);
  Put("row105001", "y", "new", 2);
  const Manifest second = MustBackUp("rows");
  EXPECT_LT(second.sent_bytes, first.sent_bytes / 2);
  EXPECT_EQ(MustBackUp("rows").sent_bytes, 0u);
  ASSERT_OK(RestoreAs(*router_, second, *blobs_, "copy", "rocksdb"));
  EXPECT_EQ(UnitsOf(*router_, "copy"), UnitsOf(*router_, "rows"));
}

TEST_F(DatasetBackup, AnEmptyDatasetIsRestored) {
  const Manifest made = MustBackUp("rows");
  EXPECT_THAT(made.files, IsEmpty());
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"));
  EXPECT_THAT(UnitsOf(*router_, "copy"), IsEmpty());
}

TEST_F(DatasetBackup, IsOfOneMoment) {
  // A row is written again and again, two columns at a time, while the backup is made.
  PutMany(2'000, 1'000);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const std::string value = std::to_string(i);
      // The first column and the last one of the dataset, in one write.
      const CellWrite cells[] = {{"a", value, std::nullopt}, {"z", value, std::nullopt}};
      EXPECT_OK(router_->PutRow("rows", "row100500", cells, {}));
    }
  });
  for (int i = 0; i < 5; ++i) {
    const Manifest made = MustBackUp("rows");
    const std::string name = "copy" + std::to_string(i);
    ASSERT_OK(RestoreAs(*router_, made, *blobs_, name, "rocksdb"));
    ASSERT_OK_AND_ASSIGN(const Row row, router_->GetRow(name, "row100500", {.columns = {{"a", "z"}}}));
    if (row.items.empty()) continue;
    EXPECT_EQ(row.items[0].cells[0].value, row.items[1].cells[0].value);
  }
  stop = true;
  writer.join();
}

TEST_F(DatasetBackup, ARestoreThatFailsLeavesNothing) {
  PutMany(100, 100);
  Manifest made = MustBackUp("rows");
  ASSERT_OK(blobs_->Delete(made.files[0].blob));
  EXPECT_THAT(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"),
              FailsWith(StatusCode::kDataLoss, "is missing"));
  EXPECT_THAT(router_->keeper().LoadEntry("copy"), FailsWith(StatusCode::kNotFound, "copy"));
  ASSERT_OK_AND_ASSIGN(const auto verified, backup::VerifyBackup(made, *blobs_, backup::VerifyDepth::kBytes));
  EXPECT_FALSE(verified.problems.empty());
  // The next backup mends it.
  EXPECT_GT(MustBackUp("rows").sent_objects, 0u);
  EXPECT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"));
  // A dataset that is there is not touched.
  Put("another", "x", "v", 1);
  EXPECT_THAT(RestoreAs(*router_, made, *blobs_, "rows", "rocksdb"),
              FailsWith(StatusCode::kAlreadyExists, "exists"));
  EXPECT_EQ(router_->GetRow("rows", "another", {})->items.size(), 1u);
}

TEST_F(DatasetBackup, ASizeThatNoFileHasIsRefusedBeforeMemoryIsTakenForIt) {
  Put("r", "x", "v", 1);
  Manifest made = MustBackUp("rows");
  ASSERT_EQ(made.files.size(), 1u);
  // A manifest may give any file this size.
  made.files[0].size = kMaxBlobBytes;
  ASSERT_OK(backup::DecodeManifest(backup::EncodeManifest(made), made.id));
  EXPECT_THAT(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"),
              FailsWith(StatusCode::kDataLoss, "the manifest is damaged"));
}

TEST_F(DatasetBackup, NobodyFindsADatasetThatIsNotComplete) {
  PutMany(100, 100);
  const Manifest made = MustBackUp("rows");
  absl::Status met;
  SetFailPointHook([&](std::string_view point) {
    if (point == "restore-serving") met = router_->GetRow("copy", "row100001", {}).status();
  });
  ASSERT_OK(RestoreAs(*router_, made, *blobs_, "copy", "rocksdb"));
  EXPECT_THAT(met, FailsWith(StatusCode::kNotFound, "copy"));
}

TEST_F(DatasetBackup, IsNotTakenForAStore) {
  const Manifest made = MustBackUp("rows");
  EXPECT_THAT(backup::RestoreBackup(made, *blobs_, dir_ / "folder"),
              FailsWith(StatusCode::kInvalidArgument, "of the dataset rows"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "folder"));
  ASSERT_OK_AND_ASSIGN(const Manifest read, backup::ReadManifest(*blobs_, made.id));
  EXPECT_EQ(read, made);
  ASSERT_OK_AND_ASSIGN(const auto verified,
                       backup::VerifyBackup(made, *blobs_, backup::VerifyDepth::kSchema));
  EXPECT_THAT(verified.datasets, ::testing::ElementsAre("rows"));
}

}  // namespace
}  // namespace kvstore
