#include "tests/backend_suite/suite.h"
#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();
const auto kEngines = ::testing::ValuesIn(OnEachEngine());

INSTANTIATE_TEST_SUITE_P(MySql, HistorySuite, kEngines, PrintName);

}  // namespace
}  // namespace kvstore::testing
