#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backup/dataset_create.h"
#include "blobstore/open_blob_store.h"
#include "tests/backup/units_of.h"
#include "tests/migration/migration_fixture.h"

/// Backups of datasets that go from an embedded store onto shards, and back.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

class ShardsBackupTest : public MigrationTest {
 protected:
  void SetUp() override { blobs_ = *OpenBlobStore("file:" + (dir_ / "blobs").string()); }

  /// Backs the dataset up, restores it on the other backend, that one back, and compares all.
  void GoThereAndBack(const std::string& dataset, const std::string& other, uint32_t type = 0) {
    Router& router = store_->router();
    const std::string home = store_->BackendOf(dataset);
    ASSERT_OK_AND_ASSIGN(const auto first, BackUp(router, dataset, *blobs_));
    ASSERT_OK(RestoreAs(router, first, *blobs_, "there", other, type));
    EXPECT_EQ(store_->BackendOf("there"), other);
    ASSERT_OK_AND_ASSIGN(const auto second, BackUp(router, "there", *blobs_));
    EXPECT_EQ(second.dataset->units, first.dataset->units);
    const uint32_t own = router.keeper().LoadEntry(dataset)->spec.type;
    ASSERT_OK(router.DropDataset(dataset, {}));
    ASSERT_OK(RestoreAs(router, second, *blobs_, dataset, home, own));
  }

  std::unique_ptr<BlobStore> blobs_;
};

TEST_F(ShardsBackupTest, RowsGoOntoShardsAndBack) {
  Create({.name = "events", .backend = "rocksdb", .max_versions = 0});
  Router& router = store_->router();
  for (uint64_t i = 0; i < 2'000; ++i) {
    const std::string column = "c" + std::to_string(i % 7);
    const std::string value = std::to_string(i);
    const CellWrite cell{column, value, 1 + i % 5};
    ASSERT_OK(router.PutRow("events", "row" + std::to_string(i % 300), {&cell, 1}, {}));
  }
  const auto before = UnitsOf(router, "events");
  GoThereAndBack("events", "mysql");
  EXPECT_EQ(UnitsOf(router, "there"), before);
  EXPECT_EQ(UnitsOf(router, "events"), before);
  // Timestamps that the shards assign are above those of the embedded store.
  const CellWrite cell{"c1", "newest", std::nullopt};
  ASSERT_OK(router.PutRow("there", "row1", {&cell, 1}, {}));
  EXPECT_EQ(router.GetRow("there", "row1", {.columns = {{"c1"}}})->items[0].cells[0].value, "newest");
}

TEST_F(ShardsBackupTest, ObjectsAndMappingsGoOntoShardsAndBack) {
  Create({.name = "pins", .shape = Shape::kObjects, .backend = "mysql", .type = 3});
  Create({.name = "boards", .shape = Shape::kMappings, .backend = "mysql"});
  Router& router = store_->router();
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, router.CreateObject("pins", R"({"n":1})", {}));
    ASSERT_OK(router.AddMapping("boards", id, 5, i));
  }
  const auto pins = UnitsOf(router, "pins");
  const auto boards = UnitsOf(router, "boards");
  GoThereAndBack("pins", "rocksdb", 4);
  EXPECT_EQ(UnitsOf(router, "pins"), pins);
  ASSERT_OK(router.DropDataset("there", {}));
  GoThereAndBack("boards", "rocksdb");
  EXPECT_EQ(UnitsOf(router, "boards"), boards);
  EXPECT_EQ(UnitsOf(router, "there"), boards);
}

TEST_F(ShardsBackupTest, ALeftoverOfTheSameNameIsRemovedAsByAPlainCreate) {
  Create({.name = "events", .backend = "rocksdb"});
  Router& router = store_->router();
  const CellWrite cell{"c", "v", 1};
  ASSERT_OK(router.PutRow("events", "row", {&cell, 1}, {}));
  ASSERT_OK_AND_ASSIGN(const auto made, BackUp(router, "events", *blobs_));
  // The catalog forgets a dataset whose tables stay.
  for (const char* const name : {"plain", "there"}) {
    Create({.name = name, .backend = "mysql"});
    ASSERT_OK(router.keeper().WithCatalog([&](Catalog& catalog) {
      const auto contents = catalog.Load();
      return contents.ok() ? catalog.Remove(name, contents->version).status() : contents.status();
    }));
    EXPECT_NE(Traces(name), std::set<std::string>());
    ASSERT_OK(router.keeper().RefreshNow());
  }
  ASSERT_OK(router.CreateDataset({.name = "plain", .backend = "mysql"}));
  ASSERT_OK(RestoreAs(router, made, *blobs_, "there", "mysql"));
  EXPECT_EQ(UnitsOf(router, "there"), UnitsOf(router, "events"));
}

TEST_F(ShardsBackupTest, ARestoreOntoShardsThatFailsLeavesNothing) {
  Create({.name = "events", .backend = "rocksdb"});
  Router& router = store_->router();
  const CellWrite cell{"c", "v", 1};
  ASSERT_OK(router.PutRow("events", "row", {&cell, 1}, {}));
  ASSERT_OK_AND_ASSIGN(const auto made, BackUp(router, "events", *blobs_));
  ASSERT_OK(blobs_->Delete(made.files[0].blob));
  EXPECT_THAT(RestoreAs(router, made, *blobs_, "there", "mysql"),
              FailsWith(absl::StatusCode::kDataLoss, "is missing"));
  EXPECT_EQ(Traces("there"), std::set<std::string>());
  EXPECT_THAT(router.keeper().LoadEntry("there"), FailsWith(absl::StatusCode::kNotFound, "there"));
}

}  // namespace
}  // namespace kvstore::testing
