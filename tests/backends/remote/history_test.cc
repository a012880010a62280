#include "tests/backend_suite/suite.h"
#include "tests/backends/remote/remote_under_test.h"
#include "tests/backends/rocksdb/under_test.h"

namespace kvstore::testing {
namespace {

// In a program of its own: the suite forks, and threads, once started, stay.
INSTANTIATE_TEST_SUITE_P(Remote, HistorySuite, ::testing::Values(Remote(RocksDb())), PrintName);

}  // namespace
}  // namespace kvstore::testing
