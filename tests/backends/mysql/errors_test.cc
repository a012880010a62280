#include "backends/mysql/driver/errors.h"

#include <gtest/gtest.h>

#include "backend_api/outcome.h"
#include "tests/support/status_matchers.h"

namespace kvstore::mysql {
namespace {

using testing::FailsWith;

sql::SQLException Numbered(int code) { return {"the server's text", "HY000", code}; }

TEST(Errors, LimitsOfConnectionsAreExhausted) {
  // They are the server's max_connections, max_user_connections, and MAX_USER_CONNECTIONS of the user.
  for (const int code : {1040, 1203, 1226}) {
    EXPECT_THAT(ToStatus(Numbered(code)),
                FailsWith(absl::StatusCode::kResourceExhausted, "the server's text"))
        << code;
  }
}

TEST(Errors, AHostThatIsDemotedHoldsWrites) {
  // It is read-only, or closed to clients (offline_mode of MySQL) while it is fenced.
  for (const int code : {1290, 1792, 1836, 3032}) {
    EXPECT_EQ(Classify(Numbered(code)), Trouble::kRefused) << code;
    EXPECT_TRUE(IsMigrating(ToStatus(Numbered(code)))) << code;
  }
  EXPECT_TRUE(IsOffline(Numbered(3032)));
  EXPECT_FALSE(IsOffline(Numbered(1290)));
}

}  // namespace
}  // namespace kvstore::mysql
