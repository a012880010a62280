#include "tests/backend_suite/suite.h"

#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();
const auto kEngines = ::testing::ValuesIn(OnEachEngine());

INSTANTIATE_TEST_SUITE_P(MySql, DatasetsSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, RowsSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, WritesSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ScanSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ObjectsSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MappingsSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MigrationSuite, kEngines, PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, UnitsSuite, kEngines, PrintName);

}  // namespace
}  // namespace kvstore::testing
