#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/backend_suite/suite.h"

/// Helpers that the tests of migration endpoints share.
namespace kvstore::testing {

/// Returns all units of a range, read page by page. Fails the test on an error.
inline std::vector<Unit> ScanAll(UnitView& view, const UnitRange& range, uint64_t as_of) {
  std::vector<Unit> units;
  auto scan = view.Scan(range, as_of);
  EXPECT_OK(scan);
  if (!scan.ok()) return units;
  for (;;) {
    auto page = (*scan)->Next();
    EXPECT_OK(page);
    if (!page.ok() || page->empty()) return units;
    for (Unit& unit : *page) units.push_back(std::move(unit));
  }
}

/// The keys of dirty entries, sorted.
inline std::vector<std::string> KeysOf(const std::vector<DirtyEntry>& entries) {
  std::vector<std::string> keys;
  for (const DirtyEntry& entry : entries) keys.push_back(entry.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// An endpoint on a dataset, with the epoch of its worker.
struct WorkerEndpoint {
  WorkerEndpoint(Backend& backend, const DatasetSpec& spec) : endpoint(*backend.OpenForMigration(spec)) {
    EXPECT_OK(endpoint->RaiseEpoch(epoch));
  }
  MigrationEndpoint* operator->() const { return endpoint.get(); }
  MigrationEndpoint& operator*() const { return *endpoint; }
  absl::Status TransitionTo(EndpointState state, bool capture) const {
    return endpoint->TransitionTo(epoch, state, capture);
  }
  /// Takes the dataset from serving to moved by the steps of a cutover.
  void Move() const {
    ASSERT_OK(TransitionTo(EndpointState::kServing, true));
    ASSERT_OK(TransitionTo(EndpointState::kFrozen, true));
    ASSERT_OK(TransitionTo(EndpointState::kMoved, true));
  }
  const uint64_t epoch = 10;
  const std::unique_ptr<MigrationEndpoint> endpoint;
};

/// The settings of a dataset that the backend does not have yet.
inline DatasetSpec Target(Shape shape) {
  return {.name = "target",
          .shape = shape,
          .backend = "test",
          .type = shape == Shape::kObjects ? 7u : 0u,
          .max_versions = shape == Shape::kRows ? 2u : 1u,
          .engine = MigrationSuite::GetParam().engine,
          .incarnation = 77};
}

}  // namespace kvstore::testing
