#include "tests/backend_suite/suite.h"

#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(MySql, DatasetsSuite, ::testing::Values(MySql()), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, RowsSuite, ::testing::Values(MySql()), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, WritesSuite, ::testing::Values(MySql()), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ScanSuite, ::testing::Values(MySql()), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ObjectsSuite, ::testing::Values(MySql()), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MappingsSuite, ::testing::Values(MySql()), PrintName);

}  // namespace
}  // namespace kvstore::testing
