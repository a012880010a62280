#include "tests/backend_suite/suite.h"

#include <vector>

#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

const auto kEngines = ::testing::ValuesIn(OnEachEngine());

/// For the suites that reach all ways to a table.
std::vector<UnderTest> AllKinds() {
  std::vector<UnderTest> kinds = OnEachEngine();
  kinds.push_back(MySqlOnFirstUse());
  return kinds;
}
const auto kKinds = ::testing::ValuesIn(AllKinds());

INSTANTIATE_TEST_SUITE_P(MySql, DatasetsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, RowsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, WritesSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ScanSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ObjectsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MappingsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MigrationSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, UnitsSuite, kKinds, PrintName);

}  // namespace
}  // namespace kvstore::testing
