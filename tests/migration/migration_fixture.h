#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/migration/migrating_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Options of a migration that may take all of the machine.
inline Json To(const std::string& target) { return {{"target", target}, {"share", 100}}; }

/// A test with an empty store on the shared fleet.
class MigrationTest : public ::testing::Test {
 protected:
  MigrationTest() {
    SharedFleet().Clear();
    store_ = std::make_unique<MigratingStore>(dir_.path());
  }
  void Create(const DatasetSpec& spec) { ASSERT_OK(store_->router().CreateDataset(spec)); }
  /// The names of a dataset's tables and triggers on the fleet.
  static std::set<std::string> Traces(const std::string& dataset);

  const TempDir dir_;
  std::unique_ptr<MigratingStore> store_;
};

}  // namespace kvstore::testing
