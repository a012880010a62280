#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"

namespace kvstore::testing {
namespace {

// This suite is a program of its own because it forks, and RocksDB's threads, once started, stay.
INSTANTIATE_TEST_SUITE_P(RocksDb, HistorySuite, ::testing::Values(RocksDb()), PrintName);

}  // namespace
}  // namespace kvstore::testing
