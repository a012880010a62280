#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "assembly/open_router.h"
#include "backup/create.h"
#include "backup/list.h"
#include "backup/restore.h"
#include "base/fail_point.h"
#include "blobstore/open_blob_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Backups of a real store while it is written to, restored and compared.
namespace kvstore {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using backup::Manifest;
using testing::FailsWith;

/// All rows of a dataset: "row column=value ..." each.
std::vector<std::string> RowsOf(KVStore& store, const std::string& dataset) {
  std::vector<std::string> rows;
  const auto partitions = store.ListPartitions(dataset, 1);
  EXPECT_OK(partitions);
  for (const Partition& partition : partitions.ok() ? *partitions : std::vector<Partition>()) {
    auto cursor = store.ScanRows(dataset, partition.range, {});
    EXPECT_OK(cursor);
    if (!cursor.ok()) return rows;
    ScannedRow row;
    for (auto more = (*cursor)->Next(row); more.ok() && *more; more = (*cursor)->Next(row)) {
      std::string text = row.key;
      for (const Item& item : row.items) {
        for (const Cell& cell : item.cells) {
          text += " " + item.column + "@" + std::to_string(cell.timestamp) + "=" + cell.value;
        }
      }
      rows.push_back(std::move(text));
    }
  }
  return rows;
}

class BackupEmbedded : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenBlobStore("file:" + (dir_ / "blobs").string());
    ASSERT_OK(opened);
    blobs_ = *std::move(opened);
    router_ = MustOpen(dir_ / "store", /*create=*/true);
    ASSERT_OK(router_->CreateDataset({.name = "rows"}));
  }
  void TearDown() override { SetFailPointHook(nullptr); }

  static std::unique_ptr<Router> MustOpen(const fs::path& folder, bool create = false) {
    auto router = OpenRouter({.data = folder, .create_if_missing = create});
    EXPECT_OK(router);
    return router.ok() ? *std::move(router) : nullptr;
  }

  absl::StatusOr<std::unique_ptr<Checkpoint>> MakeCheckpoint() {
    const auto backend = router_->keeper().FindBackend(kRocksDb);
    if (!backend.ok()) return backend.status();
    return (*backend)->MakeCheckpoint();
  }
  Manifest MustCreate() {
    auto made = backup::CreateBackup([this] { return MakeCheckpoint(); }, *blobs_);
    EXPECT_OK(made);
    return made.ok() ? *std::move(made) : Manifest();
  }
  std::unique_ptr<Router> MustRestore(const Manifest& manifest) {
    const fs::path folder = dir_ / ("restored-" + std::to_string(++restores_));
    EXPECT_OK(backup::RestoreBackup(manifest, *blobs_, folder));
    return MustOpen(folder);
  }
  void Put(const std::string& row, const std::string& value) {
    const CellWrite cell{"x", value, 1};
    ASSERT_OK(router_->PutRow("rows", row, {&cell, 1}, {}));
  }

  const testing::TempDir dir_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Router> router_;
  int restores_ = 0;
};

TEST_F(BackupEmbedded, AllShapesAreRestored) {
  ASSERT_OK(router_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  ASSERT_OK(router_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  ASSERT_OK(router_->CreateDataset({.name = "large", .blob_threshold = 1000}));
  for (int i = 0; i < 100; ++i) Put("row" + std::to_string(i), "value" + std::to_string(i));
  ASSERT_OK_AND_ASSIGN(const uint64_t pin, router_->CreateObject("pins", R"({"a":1})", {}));
  ASSERT_OK(router_->AddMapping("boards", 7, pin, 1));
  const std::string large(5000, 'v');
  const CellWrite cell{"x", large, 1};
  ASSERT_OK(router_->PutRow("large", "r", {&cell, 1}, {}));
  ASSERT_OK(router_->Compact("large", nullptr));  // so that the value is in a blob file

  const auto restored = MustRestore(MustCreate());
  EXPECT_EQ(RowsOf(*restored, "rows"), RowsOf(*router_, "rows"));
  EXPECT_EQ(RowsOf(*restored, "large"), RowsOf(*router_, "large"));
  EXPECT_EQ(restored->GetObject("pins", pin, {})->data, R"({"a":1})");
  EXPECT_EQ(*restored->CountMapping("boards", 7), 1u);
  // IDs and timestamps go on above those that were given.
  ASSERT_OK_AND_ASSIGN(const uint64_t next, restored->CreateObject("pins", "{}", {}));
  EXPECT_NE(next, pin);
  EXPECT_EQ(restored->ListDatasets()->size(), 4u);
  EXPECT_FALSE(fs::exists(dir_ / "store/checkpoints/1"));
}

TEST_F(BackupEmbedded, TheSecondBackupAfterAFewWritesSendsFewBytes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 4000; ++i) {
    std::string value(2000, ' ');
    for (char& c : value) c = static_cast<char>(random());
    Put("row" + std::to_string(10'000 + i), value);
  }
  const Manifest first = MustCreate();
  EXPECT_GT(first.sent_bytes, 8'000'000u);
  Put("row10000", "changed");
  const Manifest second = MustCreate();
  EXPECT_LT(second.sent_objects, 8u);
  EXPECT_LT(second.sent_bytes, first.sent_bytes / 100);
  // Neither a restart nor a copy of the folder makes tables new.
  router_.reset();
  fs::copy(dir_ / "store", dir_ / "copy", fs::copy_options::recursive);
  router_ = MustOpen(dir_ / "copy");
  EXPECT_LT(MustCreate().sent_bytes, first.sent_bytes / 100);
  EXPECT_EQ(RowsOf(*MustRestore(second), "rows"), RowsOf(*router_, "rows"));
}

TEST_F(BackupEmbedded, WhatWasAcknowledgedBeforeItBeganIsInIt) {
  std::atomic<bool> stopping{false};
  std::atomic<int> acknowledged{0};
  std::thread writer([&] {
    for (int i = 0; !stopping; ++i) {
      const std::string value(1000, 'v');
      const CellWrite cell{"x", value, 1};
      if (!router_->PutRow("rows", std::to_string(1'000'000 + i), {&cell, 1}, {}).ok()) return;
      acknowledged = i + 1;
    }
  });
  while (acknowledged < 100) std::this_thread::yield();
  for (int round = 0; round < 3; ++round) {
    const int before = acknowledged;
    const auto restored = MustRestore(MustCreate());
    const auto rows = RowsOf(*restored, "rows");
    EXPECT_GE(static_cast<int>(rows.size()), before);
    // The rows were written one after the other, so no later one is there without all earlier ones.
    EXPECT_TRUE(rows.empty() || rows.back().starts_with(std::to_string(1'000'000 + rows.size() - 1) + " "));
  }
  stopping = true;
  writer.join();
}

TEST_F(BackupEmbedded, ADatasetThatIsDroppedMeanwhileIsInItWhole) {
  for (int i = 0; i < 100; ++i) Put("row" + std::to_string(100 + i), "value");
  ASSERT_OK(router_->Compact("rows", nullptr));
  const auto rows = RowsOf(*router_, "rows");
  std::atomic<bool> dropped{false};
  SetFailPointHook([&](std::string_view point) {
    if (point != "backup-object" || dropped.exchange(true)) return;
    EXPECT_OK(router_->DropDataset("rows", {}));
  });
  const Manifest made = MustCreate();
  SetFailPointHook(nullptr);
  EXPECT_TRUE(dropped);
  EXPECT_EQ(RowsOf(*MustRestore(made), "rows"), rows);
  EXPECT_TRUE(MustRestore(MustCreate())->ListDatasets()->empty());
}

TEST_F(BackupEmbedded, DatasetsThatComeAndGoDoNotMakeABackupThatDoesNotOpen) {
  std::atomic<bool> stopping{false};
  std::thread changer([&] {
    for (int i = 0; !stopping; ++i) {
      const std::string name = "d" + std::to_string(i % 3);
      if (!router_->CreateDataset({.name = name}).ok() || !router_->DropDataset(name, {}).ok()) return;
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 5; ++round) {
    auto made = backup::CreateBackup([this] { return MakeCheckpoint(); }, *blobs_);
    // The catalog may change during each attempt; then it says so, and nothing is listed.
    if (!made.ok()) {
      EXPECT_THAT(made, FailsWith(StatusCode::kUnavailable, "try again when the catalog is quiet"));
      continue;
    }
    EXPECT_NE(MustRestore(*made), nullptr);
  }
  stopping = true;
  changer.join();
}

TEST_F(BackupEmbedded, AnOpenRemovesTheCheckpointsThatAKillLeft) {
  router_.reset();
  fs::create_directories(dir_ / "store/checkpoints/7/rocksdb");
  std::ofstream(dir_ / "store/checkpoints/7/rocksdb/000010.sst") << "a hard link";
  router_ = MustOpen(dir_ / "store");
  EXPECT_FALSE(fs::exists(dir_ / "store/checkpoints"));
}

TEST_F(BackupEmbedded, AStoreWithoutADatasetIsRestoredAsSuch) {
  router_ = MustOpen(dir_ / "empty", /*create=*/true);
  const auto restored = MustRestore(MustCreate());
  EXPECT_TRUE(restored->ListDatasets()->empty());
  EXPECT_OK(restored->CreateDataset({.name = "rows"}));
}

TEST_F(BackupEmbedded, DataWithoutItsCatalogIsRefused) {
  fs::remove(dir_ / "store/catalog.json");
  EXPECT_THAT(MakeCheckpoint(), FailsWith(StatusCode::kFailedPrecondition, "catalog.json is missing"));
}

}  // namespace
}  // namespace kvstore
