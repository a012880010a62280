#include "tests/backend_suite/suite.h"
#include "tests/backends/remote/remote_under_test.h"
#include "tests/backends/rocksdb/under_test.h"

namespace kvstore::testing {
namespace {

const auto kRemote = ::testing::Values(Remote(RocksDb()), Remote(RocksDb(), 2));

INSTANTIATE_TEST_SUITE_P(Remote, DatasetsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, RowsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, WritesSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, ScanSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, ObjectsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, MappingsSuite, kRemote, PrintName);
INSTANTIATE_TEST_SUITE_P(Remote, MigrationSuite, ::testing::Values(RemoteEndpoints(RocksDb())), PrintName);

}  // namespace
}  // namespace kvstore::testing
