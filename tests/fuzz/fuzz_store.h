#pragma once

#include <cstdlib>

#include "kvstore_api/open.h"
#include "reports/reports.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Returns a store with a dataset of each shape ("r", "o" of type 1, "m"), and a report "f" in the dataset
/// "reports", which lives as long as the process.
inline KVStore& FuzzStore() {
  static const TempDir dir;
  static const auto store = [] {
    auto opened = Open({.data = dir / "store"});
    if (!opened.ok() || !(*opened)->CreateDataset({.name = "r", .max_versions = 0}).ok() ||
        !(*opened)->CreateDataset({.name = "o", .shape = Shape::kObjects, .type = 1}).ok() ||
        !(*opened)->CreateDataset({.name = "m", .shape = Shape::kMappings}).ok()) {
      std::abort();
    }
    const reports::ReportInfo report{.name = "f",
                                     .keys = {{"k", "?"}},
                                     .metrics = {{.name = "m"},
                                                 {.name = "d", .kind = reports::MetricKind::kDistribution},
                                                 {.name = "u", .kind = reports::MetricKind::kDistinct}}};
    if (!reports::LocalReports(**opened, "reports")->Create(report).ok()) std::abort();
    return *std::move(opened);
  }();
  return *store;
}

}  // namespace kvstore::testing
