#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "catalog/file_catalog.h"
#include "router/router.h"
#include "tests/backends/mysql/tables_of_rows.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/replica.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Helpers that tests of changes on real servers share.
namespace kvstore::testing {

inline constexpr uint64_t kDayMs = 86'400'000;

/// A store on the shared fleet. Its backend is replaced when it is opened again.
class MySqlChangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KV_SKIP_ON_MYSQL("the change stream");
    SharedFleet().Clear();
    Open();
  }

  void Open(const mysql::MySqlOptions& options = TestFleet::Options()) {
    store_.reset();
    auto backend = SharedFleet().Open(options);
    ASSERT_OK(backend);
    backend_ = backend->get();
    Router::Backends backends;
    backends.emplace("mysql", *std::move(backend));
    auto store = Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog"), std::move(backends), "mysql");
    ASSERT_OK(store);
    store_ = *std::move(store);
  }

  void Create(DatasetSpec spec) {
    spec.keep_changes_ms = kDayMs;
    ASSERT_OK(store_->CreateDataset(spec));
  }
  absl::Status Put(const std::string& dataset, const std::string& row, const std::string& column,
                   const std::string& value) {
    const CellWrite cell{column, value, std::nullopt};
    return store_->PutRow(dataset, row, {&cell, 1}, {}).status();
  }
  /// Follows until everything was told that was written before.
  void Follow(const std::string& dataset, Replica& replica, std::string& token, uint32_t limit = 100) {
    ASSERT_OK(replica.Follow(*store_, dataset, token, limit));
  }
  /// Returns a row that is on this server.
  static std::string RowOn(size_t server) {
    for (int i = 0;; ++i) {
      const std::string row = fmt::format("row{}", i);
      if (&ServerOf(row) == &SharedFleet().server(server)) return row;
    }
  }
  void ExpectEqual(const std::string& dataset, const Replica& replica) {
    const auto there = Replica::Of(*store_, dataset);
    ASSERT_OK(there);
    EXPECT_EQ(replica.columns.size(), there->columns.size());
    EXPECT_TRUE(replica == *there);
  }

  const TempDir dir_;
  std::unique_ptr<Router> store_;
  MySqlBackend* backend_ = nullptr;
};

}  // namespace kvstore::testing
