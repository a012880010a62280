#include "tests/backend_suite/suite.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/backends/remote/remote_under_test.h"

namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();
const auto kRemote = ::testing::Values(Remote(MySql("innodb")));

INSTANTIATE_TEST_SUITE_P(Remote, DatasetsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, RowsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, WritesSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, ScanSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, ObjectsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, MappingsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, MigrationSuite, ::testing::Values(RemoteEndpoints(MySql("innodb"))),
                         PrintName);

}  // namespace
}  // namespace kvstore::testing
