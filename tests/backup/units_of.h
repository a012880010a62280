#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backup/dataset_create.h"
#include "backup/dataset_restore.h"
#include "base/clock.h"
#include "router/router.h"
#include "tests/support/status_matchers.h"

/// Helpers that tests of backups of datasets share.
namespace kvstore::testing {

inline std::unique_ptr<UnitReader> ReaderOf(Router& router, const std::string& dataset) {
  const auto entry = router.keeper().LoadEntry(dataset);
  EXPECT_OK(entry);
  auto reader = (*router.keeper().FindBackend(entry->spec.backend))->OpenUnits(entry->spec);
  EXPECT_OK(reader);
  return *std::move(reader);
}

/// All units of a dataset, whose form is the same on all backends, by their keys; fails the test, and returns
/// none, if they cannot be read.
inline std::vector<Unit> UnitsOf(Router& router, const std::string& dataset) {
  const auto reader = ReaderOf(router, dataset);
  const auto snapshot = reader->Snapshot(std::chrono::minutes(1));
  EXPECT_OK(snapshot);
  if (!snapshot.ok()) return {};
  const auto ranges = (*snapshot)->Partitions(1);
  EXPECT_OK(ranges);
  std::vector<Unit> units;
  for (const UnitRange& range : ranges.ok() ? *ranges : std::vector<UnitRange>()) {
    const auto scan = (*snapshot)->Scan(range, WallClockMs());
    EXPECT_OK(scan);
    if (!scan.ok()) return {};
    for (auto page = (*scan)->Next();; page = (*scan)->Next()) {
      EXPECT_OK(page);
      if (!page.ok()) return {};
      if (page->empty()) break;
      for (Unit& unit : *page) units.push_back(std::move(unit));
    }
  }
  std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.key < b.key; });
  return units;
}

inline absl::StatusOr<backup::Manifest> BackUp(Router& router, const std::string& dataset, BlobStore& blobs) {
  const auto entry = router.keeper().LoadEntry(dataset);
  if (!entry.ok()) return entry.status();
  return backup::CreateDatasetBackup(*ReaderOf(router, dataset), entry->spec, blobs);
}

/// Restores a dataset under a name, as the command does.
inline absl::Status RestoreAs(Router& router, const backup::Manifest& manifest, BlobStore& blobs,
                              const std::string& name, const std::string& backend, uint32_t type = 0) {
  DatasetSpec spec = manifest.dataset->spec;
  spec.name = name;
  spec.backend = backend;
  spec.engine.clear();
  spec.type = type;
  spec.incarnation = 0;
  spec.table.clear();
  return router.keeper().CreateDataset(spec, [&](const DatasetSpec& made, Backend& on) {
    auto endpoint = on.OpenForMigration(made);
    if (!endpoint.ok()) return endpoint.status();
    return backup::RestoreUnits(manifest, blobs, **endpoint, made);
  });
}

}  // namespace kvstore::testing
