#include "backend_api/row_rules.h"

#include <gtest/gtest.h>

#include <string>

#include "backend_api/outcome.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

TEST(IsUnfulfilled, TellsAConditionThatDoesNotHoldFromOtherErrorsWithItsCode) {
  const Condition absent{.column = "c", .equals = std::nullopt};
  const Condition equal{.column = "c", .equals = "v"};
  EXPECT_OK(CheckCondition(absent, std::nullopt));
  EXPECT_OK(CheckCondition(equal, "v"));
  const absl::Status errors[] = {CheckCondition(absent, "v"), CheckCondition(equal, std::nullopt),
                                 CheckCondition(equal, "w")};
  for (const absl::Status& error : errors) {
    EXPECT_TRUE(IsUnfulfilled(error)) << error;
    // As a fleet of shards tells it, perhaps of another process.
    const std::string told = "shard mod00001 at host:3306: " + std::string(error.message());
    EXPECT_TRUE(IsUnfulfilled(absl::Status(error.code(), told)));
    EXPECT_FALSE(IsUnfulfilled(MarkInDoubt(error)));
    EXPECT_FALSE(IsUnfulfilled(absl::UnavailableError(error.message())));
  }
  EXPECT_FALSE(IsUnfulfilled(absl::OkStatus()));
  EXPECT_FALSE(IsUnfulfilled(absl::FailedPreconditionError("durability: the server does not force commits")));
  EXPECT_FALSE(IsUnfulfilled(absl::AlreadyExistsError("dataset: 'a' exists already")));
}

}  // namespace
}  // namespace kvstore
