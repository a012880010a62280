#include "tests/backend_suite/suite.h"

#include <vector>

#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

std::vector<UnderTest> AllKinds() {
  std::vector<UnderTest> kinds = OnEachEngine();
  kinds.push_back(MySqlOnFirstUse());
  return kinds;
}
const auto kKinds = ::testing::ValuesIn(AllKinds());

INSTANTIATE_TEST_SUITE_P(MySql, DatasetsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, RowsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, WritesSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ScanSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ObjectsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MappingsSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MigrationSuite, kKinds, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, UnitsSuite, kKinds, PrintName);

}  // namespace
}  // namespace kvstore::testing
