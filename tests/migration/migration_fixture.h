#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/migration/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Options of a migration that may take all of the machine.
inline Json To(const std::string& target) { return {{"target", target}, {"share", 100}}; }

/// A world on the shared fleet, which is empty.
class MigrationTest : public ::testing::Test {
 protected:
  MigrationTest() {
    SharedFleet().Clear();
    world_ = std::make_unique<World>(dir_.path());
  }
  void Create(const DatasetSpec& spec) { ASSERT_OK(world_->router().CreateDataset(spec)); }
  /// Tables and the like of a dataset on the fleet.
  static std::set<std::string> Traces(const std::string& dataset);

  const TempDir dir_;
  std::unique_ptr<World> world_;
};

}  // namespace kvstore::testing
