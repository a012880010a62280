#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "backend_api/backend.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The contract of every backend, as tests against the backend interface. A backend runs them with
///
///   INSTANTIATE_TEST_SUITE_P(RocksDb, RowsSuite, ::testing::Values(UnderTest()), PrintName);
///
/// for each suite of a shape that it stores. docs/backends.md says more.
namespace kvstore::testing {

/// Describes a backend to the suites.
struct UnderTest {
  std::string name;
  /// Opens the backend on the data stored for `dir`, which is an empty folder at first. `known` are the
  /// datasets created so far.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const std::filesystem::path& dir,
                                                         std::span<const DatasetSpec> known)>
      open;
  /// Rearranges the stored data at random, as the engine might at any time. No read may give another answer
  /// afterwards.
  std::function<void(Backend&, const DatasetSpec&, Random&)> disturb;
  /// Whether a scan returns all rows in order of their keys; if not, only those of each partition are in
  /// order.
  bool ordered = true;
  /// DatasetSpec::engine of the datasets.
  std::string engine = {};
  /// The number of operations of a random history.
  uint64_t operations = 120'000;
};

inline void PrintTo(const UnderTest& under_test, std::ostream* out) { *out << under_test.name; }
inline std::string PrintName(const ::testing::TestParamInfo<UnderTest>& info) { return info.param.name; }

/// A test with one backend in a folder of its own.
class BackendSuite : public ::testing::TestWithParam<UnderTest> {
 protected:
  void SetUp() override { Reopen(); }

  /// Closes the backend, if it is open, and opens it again.
  void Reopen();
  Backend& backend() { return *backend_; }

  /// Creates and opens a dataset of rows named "rows".
  std::shared_ptr<RowStore> Rows(uint32_t max_versions = 1, uint64_t ttl_ms = 0);
  std::shared_ptr<ObjectStore> Objects();
  std::shared_ptr<MappingStore> Mappings();
  /// Creates a dataset with these settings, but the backend, engine and incarnation of this test.
  DatasetSpec Create(DatasetSpec spec);
  /// Changes the settings of the dataset that was created last.
  void Alter(const DatasetChange& change);
  /// Reclaims the space of all cells that are not visible, in the dataset that was created last.
  void Reclaim();
  const DatasetSpec& spec() const { return datasets_.back(); }

 private:
  TempDir dir_;
  std::vector<DatasetSpec> datasets_;
  std::unique_ptr<Backend> backend_;
};

class DatasetsSuite : public BackendSuite {};
class RowsSuite : public BackendSuite {};
class WritesSuite : public BackendSuite {};
class ScanSuite : public BackendSuite {};
class ObjectsSuite : public BackendSuite {};
class MappingsSuite : public BackendSuite {};
/// For backends with Capabilities::migration.
class MigrationSuite : public BackendSuite {};

/// For backends with OpenUnits whose readers take snapshots.
class UnitsSuite : public BackendSuite {};

/// Runs random histories; opens the backend in child processes.
class HistorySuite : public ::testing::TestWithParam<UnderTest> {};

// ---- short forms ----

/// Writes one cell.
absl::Status PutCell(RowStore& rows, std::string_view row, std::string_view column, std::string_view value,
                     std::optional<uint64_t> timestamp = std::nullopt, const WriteOptions& options = {});

/// Returns the first page of a row as text: "column@timestamp=value column@timestamp=value". Fails the test
/// on an error.
std::string Read(RowStore& rows, std::string_view row, const ReadOptions& options = {});
std::string ToText(std::span<const Item> items);

/// Reads all pages of a row and joins them: a column that was split between two pages is one item.
absl::StatusOr<std::vector<Item>> ReadPages(RowStore& rows, std::string_view row, const ReadOptions& options);

/// Returns all rows of a range in order of their keys, with the pieces of a row joined; fails if they did not
/// come in the order that UnderTest::ordered promises.
///
/// pause  closes the scan after so many pieces, and resumes it at its position, again and again; 0: never.
absl::StatusOr<std::vector<ScannedRow>> ReadRange(const UnderTest& under_test, RowStore& rows,
                                                  const RowRange& range, const ScanOptions& options,
                                                  size_t pause = 0);

/// Appends the items of a page to those of the page before it.
void AppendPage(std::vector<Item>& items, std::vector<Item> page);

}  // namespace kvstore::testing

namespace kvstore {

/// Prints an item for gtest.
inline void PrintTo(const Item& item, std::ostream* out) {
  *out << ::testing::PrintToString(item.column);
  for (const Cell& cell : item.cells)
    *out << " @" << cell.timestamp << "=" << ::testing::PrintToString(cell.value);
}

}  // namespace kvstore
