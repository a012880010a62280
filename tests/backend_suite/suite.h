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

#include "kvstore_api/backend.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// What every backend must do, as tests against the backend interface. A backend runs them with
///
///   INSTANTIATE_TEST_SUITE_P(RocksDb, RowsSuite, ::testing::Values(UnderTest()), PrintName);
///
/// and so for each suite of a shape that it stores. docs/backends.md says more.
namespace kvstore::testing {

/// A backend as the suites see it.
struct UnderTest {
  std::string name;
  /// Opens the backend on what is stored for `dir`, an empty folder at first. `known` are the datasets
  /// created so far.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const std::filesystem::path& dir,
                                                         std::span<const DatasetSpec> known)>
      open;
  /// Rearranges what is stored, at random, as the engine might at any time: no read may give another answer
  /// after.
  std::function<void(Backend&, const DatasetSpec&, Random&)> disturb;
  /// Whether a scan returns all rows in order of their keys; else in order within each partition only.
  bool ordered = true;
  /// DatasetSpec::engine of the datasets.
  std::string engine = {};
  /// How long a random history is.
  uint64_t operations = 120'000;
};

inline void PrintTo(const UnderTest& under_test, std::ostream* out) { *out << under_test.name; }
inline std::string PrintName(const ::testing::TestParamInfo<UnderTest>& info) { return info.param.name; }

/// One backend in a folder of its own.
class BackendSuite : public ::testing::TestWithParam<UnderTest> {
 protected:
  void SetUp() override { Reopen(); }

  /// Closes the backend, if it is open, and opens it again.
  void Reopen();
  Backend& backend() { return *backend_; }

  /// A dataset of rows named "rows".
  std::shared_ptr<RowStore> Rows(uint32_t max_versions = 1, uint64_t ttl_ms = 0);
  std::shared_ptr<ObjectStore> Objects();
  std::shared_ptr<MappingStore> Mappings();
  /// Changes the settings of the dataset that was created last.
  void Alter(const DatasetChange& change);
  /// Removes all that is not visible.
  void Reclaim();
  const DatasetSpec& spec() const { return datasets_.back(); }

 private:
  DatasetSpec Create(DatasetSpec spec);

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
/// Of backends with Capabilities::migration.
class MigrationSuite : public BackendSuite {};

/// Random histories; opens the backend in processes of its own.
class HistorySuite : public ::testing::TestWithParam<UnderTest> {};

// ---- short forms ----

/// Writes one cell.
absl::Status PutCell(RowStore& rows, std::string_view row, std::string_view column, std::string_view value,
                     std::optional<uint64_t> timestamp = std::nullopt, const WriteOptions& options = {});

/// The first page of a row as text: "column@timestamp=value column@timestamp=value". Fails the test on an
/// error.
std::string Read(RowStore& rows, std::string_view row, const ReadOptions& options = {});
std::string ToText(std::span<const Item> items);

/// All pages of a row, put together again: a column that was cut between two pages is one item.
absl::StatusOr<std::vector<Item>> ReadPages(RowStore& rows, std::string_view row, const ReadOptions& options);

/// All rows of a range in order of their keys, pieces put together again; fails if they did not come as
/// UnderTest::ordered promises. With `pause` the scan is closed and resumed by its
/// position after so many pieces, again and again.
absl::StatusOr<std::vector<ScannedRow>> ReadRange(const UnderTest& under_test, RowStore& rows,
                                                  const RowRange& range, const ScanOptions& options,
                                                  size_t pause = 0);

/// Adds the items of a page behind those of the page before it.
void AppendPage(std::vector<Item>& items, std::vector<Item> page);

}  // namespace kvstore::testing

namespace kvstore {

/// How gtest prints an item.
inline void PrintTo(const Item& item, std::ostream* out) {
  *out << ::testing::PrintToString(item.column);
  for (const Cell& cell : item.cells)
    *out << " @" << cell.timestamp << "=" << ::testing::PrintToString(cell.value);
}

}  // namespace kvstore
