#include "tests/backend_suite/suite.h"

#include "tests/backends/cached/cached_under_test.h"
#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

const bool kSharedCaches = ShareCacheFleet();
const bool kShared = ShareFleet();
const auto kCached = ::testing::Values(Cached(MySql("innodb")));

INSTANTIATE_TEST_SUITE_P(Cached, DatasetsSuite, kCached, PrintName);
INSTANTIATE_TEST_SUITE_P(Cached, ObjectsSuite, kCached, PrintName);
INSTANTIATE_TEST_SUITE_P(Cached, MappingsSuite, kCached, PrintName);
INSTANTIATE_TEST_SUITE_P(Cached, MigrationSuite, kCached, PrintName);

}  // namespace

// Rows pass the caches by.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowsSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WritesSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ScanSuite);

}  // namespace kvstore::testing
