#include "tests/backend_suite/suite.h"
#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

// In a program of its own: the suite forks, and RocksDB's threads, once started, stay.
INSTANTIATE_TEST_SUITE_P(MySql, HistorySuite, ::testing::Values(MySql()), PrintName);

}  // namespace
}  // namespace kvstore::testing
