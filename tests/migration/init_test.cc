#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "backends/rocksdb/engine/data_dir.h"
#include "base/fail_point.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"

/// `kv shards init` while a dataset migrates.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();
constexpr int kRows = 100;

/// Does what `kv shards init` does, as a process of its own would.
void Init(const std::filesystem::path& dir) {
  const mysql::ReadSpecs read = [&]() -> absl::StatusOr<std::vector<DatasetSpec>> {
    FileCatalog catalog(rocks::DataDir::CatalogOf(dir));
    const auto contents = catalog.Load();
    if (!contents.ok()) return contents.status();
    std::vector<DatasetSpec> specs;
    for (const CatalogEntry& entry : contents->entries) {
      if (entry.state == DatasetState::kActive && entry.spec.backend == "mysql") specs.push_back(entry.spec);
    }
    return specs;
  };
  const auto backend = SharedFleet().Open();
  ASSERT_OK(backend);
  EXPECT_OK((*backend)->Init(read, nullptr));
}

TEST_F(MigrationTest, InitAtEachStepOfAMigrationMakesNothingThatIsInTheWay) {
  Create({.name = "moving", .backend = "mysql"});
  const CellWrite cell{"c", "v", std::nullopt};
  for (int i = 0; i < kRows; ++i) {
    ASSERT_OK(store_->router().PutRow("moving", fmt::format("row{}", i), {&cell, 1}, {}));
  }
  std::mutex mutex;
  std::set<std::string> points;  // guarded by mutex
  SetFailPointHook([&](std::string_view name) {
    if (!name.starts_with("cutover.") && !name.starts_with("finish.") && !name.starts_with("abort.")) return;
    const std::lock_guard lock(mutex);
    points.emplace(name);
    Init(dir_.path());
  });
  const auto check = [&] {
    for (int i = 0; i < kRows; ++i) {
      const auto row = store_->router().GetRow("moving", fmt::format("row{}", i), {});
      ASSERT_OK(row);
      EXPECT_EQ(row->items.size(), 1u) << i;
    }
  };
  // The dataset migrates there and back, and the migration is cancelled.
  store_->Do("create", "moving", To("rocksdb"));
  store_->Do("start", "moving");
  store_->Await("moving", "ready");
  store_->Do("cutover", "moving");
  store_->Await("moving", "reversible");
  check();
  store_->Do("rollback", "moving");
  EXPECT_TRUE(Eventually([&] { return store_->PhaseOf("moving") == "aborted"; }));
  check();
  EXPECT_EQ(Traces("moving"), std::set<std::string>{"moving"});
  // The dataset migrates for good.
  store_->Do("create", "moving", To("rocksdb"));
  store_->Do("start", "moving");
  store_->Await("moving", "ready");
  store_->Do("cutover", "moving");
  store_->Await("moving", "reversible");
  store_->Do("finish", "moving");
  EXPECT_TRUE(Eventually([&] { return store_->PhaseOf("moving") == "finished"; }));
  SetFailPointHook(nullptr);
  check();
  EXPECT_EQ(Traces("moving"), std::set<std::string>{});
  EXPECT_TRUE(points.contains("cutover.moved"));
}

TEST_F(MigrationTest, ADatasetThatComesBackToMySqlHasTheSettingsItWasGivenElsewhere) {
  Create({.name = "moving", .backend = "mysql", .max_versions = 1});
  const auto migrate = [&](const char* target) {
    Json options = To(target);
    options["auto"] = true;
    store_->Do("create", "moving", options);
    store_->Do("start", "moving");
    store_->Await("moving", "reversible");
    store_->Do("finish", "moving");
    EXPECT_TRUE(Eventually([&] { return store_->PhaseOf("moving") == "finished"; }));
  };
  migrate("rocksdb");
  ASSERT_OK(store_->router().AlterDataset("moving", {.max_versions = 5}));
  for (uint64_t timestamp = 1; timestamp <= 4; ++timestamp) {
    const CellWrite cell{"c", "v", timestamp};
    ASSERT_OK(store_->router().PutRow("moving", "r", {&cell, 1}, {}));
  }
  migrate("mysql");
  const auto versions = [&] {
    const auto row = store_->router().GetRow("moving", "r", {.versions = 9});
    return row.ok() && !row->items.empty() ? row->items[0].cells.size() : 0;
  };
  EXPECT_EQ(versions(), 4u);
  ASSERT_OK(store_->router().Compact("moving", nullptr));
  EXPECT_EQ(versions(), 4u) << "what can be seen is not surplus";
}

}  // namespace
}  // namespace kvstore::testing
