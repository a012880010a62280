#include "kvstore_api/open.h"

#include <gtest/gtest.h>

#include <fstream>

#include "assembly/open_router.h"
#include "catalog/file_catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::TempDir;

std::unique_ptr<KVStore> OpenStore(const std::filesystem::path& dir) {
  auto store = Open({.data = dir});
  EXPECT_OK(store);
  return store.ok() ? *std::move(store) : nullptr;
}

absl::Status PutCell(KVStore& store, std::string_view dataset, std::string_view row, std::string_view value) {
  const CellWrite cell{"x", value, 1};
  return store.PutRow(dataset, row, {&cell, 1}, {}).status();
}

std::string Value(KVStore& store, std::string_view dataset, std::string_view row) {
  const auto read = store.GetRow(dataset, row, {});
  if (!read.ok()) return read.status().ToString();
  return read->items.empty() ? "(none)" : read->items[0].cells[0].value;
}

TEST(Open, MakesAStoreAndOpensItAgain) {
  const TempDir dir;
  EXPECT_THAT(Open({.data = dir / "s", .create_if_missing = false}),
              FailsWith(absl::StatusCode::kNotFound, "no store"));
  {
    const auto store = OpenStore(dir / "s");
    ASSERT_OK(store->CreateDataset({.name = "events", .max_versions = 7, .ttl_ms = 1ULL << 60}));
    ASSERT_OK(store->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
    ASSERT_OK(store->AlterDataset("events", {.max_versions = 8, .durability = Durability::kMachine}));
    ASSERT_OK(PutCell(*store, "events", "r", "v"));
  }
  const auto store = OpenStore(dir / "s");
  ASSERT_OK_AND_ASSIGN(const auto datasets, store->ListDatasets());
  ASSERT_EQ(datasets.size(), 2u);
  EXPECT_EQ(datasets[0].name, "events");
  EXPECT_EQ(datasets[0].max_versions, 8u);
  EXPECT_EQ(datasets[0].durability, Durability::kMachine);
  EXPECT_EQ(datasets[0].backend, "rocksdb");
  EXPECT_EQ(datasets[1].type, 1u);
  EXPECT_EQ(Value(*store, "events", "r"), "v");
}

TEST(Open, ASecondTimeNamesTheHolder) {
  const TempDir dir;
  const auto store = OpenStore(dir / "s");
  EXPECT_THAT(Open({.data = dir / "s"}), FailsWith(absl::StatusCode::kUnavailable, "is open in process"));
}

TEST(Open, FinishesADropThatACrashCutShort) {
  const TempDir dir;
  DatasetSpec spec;
  {
    const auto store = OpenStore(dir / "s");
    ASSERT_OK(store->CreateDataset({.name = "events"}));
    ASSERT_OK(PutCell(*store, "events", "r", "v"));
    spec = *store->GetDataset("events");
  }
  {
    FileCatalog catalog(dir / "s" / "catalog.json");
    ASSERT_OK(catalog.Load());
    ASSERT_OK(catalog.Put({spec, DatasetState::kDropping}, 0));
  }
  const auto store = OpenStore(dir / "s");
  EXPECT_TRUE(store->ListDatasets()->empty());
  ASSERT_OK(store->CreateDataset({.name = "events"}));
  EXPECT_EQ(Value(*store, "events", "r"), "(none)");
}

TEST(Open, UndoesACreateThatACrashCutShort) {
  for (const bool family_made : {false, true}) {
    const TempDir dir;
    {
      const auto store = OpenStore(dir / "s");
      if (family_made) {
        ASSERT_OK(store->CreateDataset({.name = "events"}));
      }
    }
    {
      FileCatalog catalog(dir / "s" / "catalog.json");
      ASSERT_OK(catalog.Load());
      ASSERT_OK(catalog.Put(
          {{.name = "events", .backend = "rocksdb", .incarnation = 5}, DatasetState::kCreating}, 0));
    }
    const auto store = OpenStore(dir / "s");
    EXPECT_TRUE(store->ListDatasets()->empty());
    EXPECT_OK(store->CreateDataset({.name = "events"}));
  }
}

TEST(Open, ACreateBesideOtherDatasetsChangesTheCatalogOnce) {
  const TempDir dir;
  const auto router = OpenRouter({.data = dir / "s"});
  ASSERT_OK(router);
  const auto changes_of_a_create = [&](const std::string& name) {
    int64_t version = 0;
    const auto read = [&](Catalog& catalog) {
      const auto contents = catalog.Load();
      if (contents.ok()) version = contents->version;
      return contents.status();
    };
    EXPECT_OK((*router)->keeper().WithCatalog(read));
    const int64_t before = version;
    EXPECT_OK((*router)->CreateDataset({.name = name}));
    EXPECT_OK((*router)->keeper().WithCatalog(read));
    return version - before;
  };
  EXPECT_EQ(changes_of_a_create("first"), 2);
  EXPECT_EQ(changes_of_a_create("second"), 1);
  EXPECT_EQ((*router)->ListDatasets()->size(), 2u);
}

TEST(Open, ACatalogWithoutItsDataIsDataLoss) {
  const TempDir dir;
  { ASSERT_OK(OpenStore(dir / "s")->CreateDataset({.name = "events"})); }
  const auto catalog = dir / "s" / "catalog.json";
  {
    FileCatalog file(catalog);
    ASSERT_OK(file.Load());
    ASSERT_OK(file.Put({{.name = "gone", .backend = "rocksdb", .incarnation = 5}, DatasetState::kActive}, 0));
  }
  EXPECT_THAT(Open({.data = dir / "s"}), FailsWith(absl::StatusCode::kDataLoss, "'gone'"));
  std::filesystem::remove_all(dir / "s" / "rocksdb");
  EXPECT_THAT(Open({.data = dir / "s"}), FailsWith(absl::StatusCode::kDataLoss, "no database here"));
  EXPECT_FALSE(std::filesystem::exists(dir / "s" / "rocksdb" / "CURRENT"));
}

TEST(Open, DataWithoutItsCatalogIsDataLoss) {
  const TempDir dir;
  {
    const auto store = OpenStore(dir / "s");
    ASSERT_OK(store->CreateDataset({.name = "events"}));
    ASSERT_OK(PutCell(*store, "events", "r", "v"));
  }
  const auto catalog = dir / "s" / "catalog.json";
  std::filesystem::rename(catalog, dir / "away");
  EXPECT_THAT(Open({.data = dir / "s"}),
              FailsWith(absl::StatusCode::kDataLoss, catalog.string() + " is missing"));
  EXPECT_THAT(Open({.data = dir / "s"}), FailsWith(absl::StatusCode::kDataLoss, "events"));
  EXPECT_FALSE(std::filesystem::exists(catalog));
  std::filesystem::rename(dir / "away", catalog);
  EXPECT_EQ(Value(*OpenStore(dir / "s"), "events", "r"), "v");
}

TEST(Open, AStoreThatNeverHadADatasetNeedsNoCatalog) {
  const TempDir dir;
  OpenStore(dir / "s");
  EXPECT_FALSE(std::filesystem::exists(dir / "s" / "catalog.json"));
  EXPECT_OK(OpenStore(dir / "s")->CreateDataset({.name = "events"}));
}

}  // namespace
}  // namespace kvstore
