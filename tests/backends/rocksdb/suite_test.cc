#include "tests/backend_suite/suite.h"

#include "tests/backends/rocksdb/under_test.h"

namespace kvstore::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(RocksDb, DatasetsSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, RowsSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, WritesSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, ScanSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, ObjectsSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, MappingsSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, MigrationSuite, ::testing::Values(RocksDb()), PrintName);
INSTANTIATE_TEST_SUITE_P(RocksDb, UnitsSuite, ::testing::Values(RocksDb()), PrintName);

}  // namespace
}  // namespace kvstore::testing
