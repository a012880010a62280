#include "backends/mysql/driver/pool.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace kvstore::mysql {
namespace {

using testing::FailsWith;

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

TEST(Pool, AQuarterOfItIsHeldForLongAtMost) {
  MySqlOptions options;
  options.pool.max_connections = 8;
  ConnectionBudget budget(options.pool);
  Pool pool(Host{"127.0.0.1", 1}, options, budget);
  const Hold one(pool);
  EXPECT_OK(one.status());
  {
    const Hold two(pool);
    EXPECT_OK(two.status());
    EXPECT_THAT(Hold(pool).status(), FailsWith(kExhausted, "2 of its 8 connections are held"));
  }
  EXPECT_OK(Hold(pool).status());
}

TEST(Pool, OneOfFewConnectionsMayBeHeld) {
  for (const size_t connections : {2, 3}) {
    MySqlOptions options;
    options.pool.max_connections = connections;
    ConnectionBudget budget(options.pool);
    Pool pool(Host{"127.0.0.1", 1}, options, budget);
    const Hold one(pool);
    EXPECT_OK(one.status());
    EXPECT_THAT(Hold(pool).status(), FailsWith(kExhausted, "1 of its"));
  }
}

TEST(Pool, TheOnlyConnectionIsForCalls) {
  MySqlOptions options;
  options.pool.max_connections = 1;
  ConnectionBudget budget(options.pool);
  Pool pool(Host{"127.0.0.1", 1}, options, budget);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Hold(pool).status(), FailsWith(kExhausted, "pool.max_connections is 1"));
  }
}

}  // namespace
}  // namespace kvstore::mysql
