#pragma once

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Assertions on absl::Status and absl::StatusOr, which print the message when they fail.
namespace kvstore::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

/// Matches OK.
MATCHER(IsOk, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

/// Matches an error with this code, whose message contains `text`.
MATCHER_P2(FailsWith, code, text, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace kvstore::testing

#define ASSERT_OK(expression) ASSERT_THAT(expression, ::kvstore::testing::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT(expression, ::kvstore::testing::IsOk())

#define KV_CONCAT_(a, b) a##b
#define KV_CONCAT(a, b) KV_CONCAT_(a, b)
#define KV_ASSERT_OK_AND_ASSIGN_(result, target, expression) \
  auto result = (expression);                                \
  ASSERT_THAT(result, ::kvstore::testing::IsOk());           \
  target = *std::move(result)
/// ASSERT_OK_AND_ASSIGN(auto value, StatusOrExpression());
#define ASSERT_OK_AND_ASSIGN(target, ...) \
  KV_ASSERT_OK_AND_ASSIGN_(KV_CONCAT(kv_result_, __LINE__), target, (__VA_ARGS__))
