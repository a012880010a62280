#include "tests/backend_suite/suite.h"
#include "tests/backends/mysql/test_fleet.h"

/// Tests the statements for servers that do not know INSERT ... RETURNING, on a MariaDB that calls itself a
/// MySQL 8. Where the tests run on MySQL itself, suite_test.cc is the same.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet({"--version=8.0.36"});

INSTANTIATE_TEST_SUITE_P(MySql, DatasetsSuite, ::testing::Values(MySql("innodb")), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, RowsSuite, ::testing::Values(MySql("innodb")), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, WritesSuite, ::testing::Values(MySql("innodb")), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ScanSuite, ::testing::Values(MySql("innodb")), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, ObjectsSuite, ::testing::Values(MySql("innodb")), PrintName);
INSTANTIATE_TEST_SUITE_P(MySql, MappingsSuite, ::testing::Values(MySql("innodb")), PrintName);

TEST(WithoutReturning, TheServerIsTakenForAMySql8) {
  Opened dataset({.name = "pins", .shape = Shape::kObjects, .type = 1});
  const Host host{"127.0.0.1", SharedFleet().server(0).port()};
  EXPECT_FALSE((*dataset.backend->fleet().PoolOf(host).Acquire())->traits().returning);
}

}  // namespace
}  // namespace kvstore::testing
