#include "backend_api/validate.h"

#include <gtest/gtest.h>

#include "kvstore_api/limits.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const std::string kLongest(1024, 'x');
const std::string kTooLong(1025, 'x');

TEST(Validate, RowKeys) {
  EXPECT_OK(ValidateRowKey("a"));
  EXPECT_OK(ValidateRowKey(std::string_view("\0", 1)));
  EXPECT_OK(ValidateRowKey(kLongest));
  EXPECT_THAT(ValidateRowKey(""), FailsWith(kInvalid, "row: a key has 1 to 1024 bytes, this one has 0"));
  EXPECT_THAT(ValidateRowKey(kTooLong),
              FailsWith(kInvalid, "row: a key has 1 to 1024 bytes, this one has 1025"));
}

TEST(Validate, Reads) {
  const auto check = [](const ReadOptions& options) { return ValidateRead("r", options); };
  EXPECT_OK(check({}));
  EXPECT_OK(check({.columns = {{"", kLongest}}}));
  EXPECT_THAT(ValidateRead("", {}), FailsWith(kInvalid, "row"));
  EXPECT_THAT(check({.columns = std::vector<std::string>{}}), FailsWith(kInvalid, "columns: an empty list"));
  EXPECT_THAT(check({.columns = {{kTooLong}}}),
              FailsWith(kInvalid, "column: a name of 1025 bytes, the limit is 1024"));
  EXPECT_THAT(check({.versions = 0}), FailsWith(kInvalid, "versions: must be at least 1"));
  EXPECT_THAT(check({.limit = 0}), FailsWith(kInvalid, "limit: must be at least 1"));
  EXPECT_OK(check({.after_column = kLongest}));
  EXPECT_THAT(check({.after_column = kTooLong}),
              FailsWith(kInvalid, "after_column: a name of 1025 bytes, the limit is 1024"));
  EXPECT_THAT(check({.max_bytes = 0}), FailsWith(kInvalid, "max_bytes: 0 is out of range 1..67108864"));
  EXPECT_THAT(check({.max_bytes = kMaxPageBytes + 1}), FailsWith(kInvalid, "max_bytes: 67108865"));
  EXPECT_OK(check({.time_range = {kMaxTimestamp, kMaxTimestamp + 1}}));
  EXPECT_THAT(check({.time_range = {5, 5}}),
              FailsWith(kInvalid, "start_timestamp: 5 is not before end_timestamp 5"));
  EXPECT_THAT(check({.time_range = {6, 5}}), FailsWith(kInvalid, "start_timestamp: 6"));
  EXPECT_THAT(check({.time_range = {kMaxTimestamp + 1, UINT64_MAX}}), FailsWith(kInvalid, "start_timestamp"));
  EXPECT_THAT(check({.time_range = {0, kMaxTimestamp + 2}}), FailsWith(kInvalid, "end_timestamp"));
}

TEST(Validate, Puts) {
  const auto check = [](std::vector<CellWrite> cells, const WriteOptions& options = {}) {
    return ValidatePut("r", cells, options);
  };
  const std::string largest(kMaxValueBytes, 'v');
  const std::string too_large(kMaxValueBytes + 1, 'v');
  EXPECT_OK(check({{"", ""}}));
  EXPECT_OK(check({{kLongest, largest, kMaxTimestamp}}));
  EXPECT_OK(check({{"a", "1", 1}, {"a", "2", 2}, {"a", "3"}, {"b", "4"}}));
  EXPECT_THAT(check({}), FailsWith(kInvalid, "items: a put needs at least one"));
  EXPECT_THAT(check({{kTooLong, ""}}), FailsWith(kInvalid, "column"));
  EXPECT_THAT(check({{"a", too_large}}), FailsWith(kInvalid, "value: 4194305 bytes, the limit is 4194304"));
  EXPECT_THAT(check({{"a", "", kMaxTimestamp + 1}}), FailsWith(kInvalid, "timestamp: 9223372036854775808"));
  EXPECT_OK(check({{"", largest}, {"", largest, 1}}));
  EXPECT_THAT(check({{"a", largest}, {"b", largest}}),
              FailsWith(kInvalid, "8388610 bytes of names and values, the limit is 8388608"));
  EXPECT_THAT(check({{"a", "1", 5}, {"a", "2", 5}}), FailsWith(kInvalid, "same (column, timestamp) twice"));
  EXPECT_THAT(check({{"b", "1"}, {"a", "1"}, {"b", "2"}}),
              FailsWith(kInvalid, "same (column, timestamp) twice"));
  const std::vector<CellWrite> many(kMaxPageCells + 1);
  EXPECT_THAT(ValidatePut("r", many, {}),
              FailsWith(kInvalid, "items: 100001 cells in one put, the limit is 100000"));
  EXPECT_THAT(ValidatePut("", {}, {}), FailsWith(kInvalid, "row"));
  EXPECT_THAT(check({{"a", ""}}, {.condition = Condition{.column = kTooLong}}),
              FailsWith(kInvalid, "condition.column"));
  EXPECT_THAT(check({{"a", ""}}, {.condition = Condition{.column = "a", .equals = too_large}}),
              FailsWith(kInvalid, "condition.equals"));
}

TEST(Validate, Deletes) {
  const auto check = [](const DeleteOptions& options) { return ValidateDelete("r", options); };
  EXPECT_OK(check({}));
  EXPECT_OK(check({.columns = {{""}}}));
  EXPECT_OK(check({.cells = {{{"a", kMaxTimestamp}}}}));
  EXPECT_THAT(ValidateDelete(kTooLong, {}), FailsWith(kInvalid, "row"));
  EXPECT_THAT(check({.columns = std::vector<std::string>{}}), FailsWith(kInvalid, "columns: an empty list"));
  EXPECT_THAT(check({.columns = {{kTooLong}}}), FailsWith(kInvalid, "column"));
  EXPECT_THAT(check({.cells = std::vector<CellName>()}), FailsWith(kInvalid, "cells: an empty list"));
  EXPECT_THAT(check({.cells = {{{kTooLong, 1}}}}), FailsWith(kInvalid, "column"));
  EXPECT_THAT(check({.cells = std::vector<CellName>(kMaxPageCells + 1)}),
              FailsWith(kInvalid, "cells: 100001 names, the limit is 100000"));
  EXPECT_THAT(check({.columns = std::vector<std::string>(kMaxPageCells + 1)}),
              FailsWith(kInvalid, "columns: 100001 names, the limit is 100000"));
  EXPECT_THAT(check({.cells = {{{"a", kMaxTimestamp + 1}}}}), FailsWith(kInvalid, "timestamp"));
  EXPECT_THAT(check({.columns = {{"a"}}, .cells = {{{"a", 1}}}}), FailsWith(kInvalid, "columns, cells"));
}

TEST(Validate, Scans) {
  EXPECT_OK(ValidateScan({}, {}));
  EXPECT_OK(ValidateScan({kLongest, ""}, {}));
  EXPECT_THAT(ValidateScan({kTooLong, ""}, {}),
              FailsWith(kInvalid, "start_row: 1025 bytes, the limit is 1024"));
  EXPECT_THAT(ValidateScan({"", kTooLong}, {}), FailsWith(kInvalid, "end_row"));
  EXPECT_THAT(ValidateScan({"b", "b"}, {}), FailsWith(kInvalid, "start_row: is not before end_row"));
  EXPECT_THAT(ValidateScan({}, {.columns = std::vector<std::string>{}}), FailsWith(kInvalid, "columns"));
  EXPECT_THAT(ValidateScan({}, {.versions = 0}), FailsWith(kInvalid, "versions"));
  EXPECT_THAT(ValidateScan({}, {.max_bytes = kMaxPageBytes + 1}), FailsWith(kInvalid, "max_bytes"));
}

TEST(Validate, BatchesIdsAndListings) {
  EXPECT_OK(ValidateBatch(1));
  EXPECT_OK(ValidateBatch(10'000));
  EXPECT_THAT(ValidateBatch(0), FailsWith(kInvalid, "batch: 0 entries, a batch has 1 to 10000"));
  EXPECT_THAT(ValidateBatch(10'001), FailsWith(kInvalid, "batch: 10001"));
  EXPECT_OK(ValidateId("from", kMaxId));
  EXPECT_THAT(ValidateId("from", kMaxId + 1), FailsWith(kInvalid, "from: 4611686018427387904 is not an ID"));
  EXPECT_OK(ValidateListing({.limit = 10'000}));
  EXPECT_THAT(ValidateListing({.limit = 0}), FailsWith(kInvalid, "limit: 0 is out of range 1..10000"));
  EXPECT_THAT(ValidateListing({.limit = 10'001}), FailsWith(kInvalid, "limit: 10001"));
  EXPECT_THAT(ValidateListing({.offset = 1, .marker = "x"}), FailsWith(kInvalid, "offset, marker"));
}

TEST(Validate, ScansOfIds) {
  EXPECT_OK(ValidateObjectScan({}, {}));
  EXPECT_OK(ValidateObjectScan({kMaxId, kMaxId + 1}, {.limit = 10'000}));
  EXPECT_THAT(ValidateObjectScan({7, 7}, {}), FailsWith(kInvalid, "start_id: 7 is not before end_id 7"));
  EXPECT_THAT(ValidateObjectScan({kMaxId + 1, kMaxId + 1}, {}), FailsWith(kInvalid, "start_id"));
  EXPECT_THAT(ValidateObjectScan({0, kMaxId + 2}, {}),
              FailsWith(kInvalid, "end_id: 4611686018427387905 is beyond the limit of 4611686018427387904"));
  EXPECT_THAT(ValidateObjectScan({}, {.limit = 0}), FailsWith(kInvalid, "limit: 0 is out of range 1..10000"));
  EXPECT_THAT(ValidateObjectScan({}, {.max_bytes = 0}), FailsWith(kInvalid, "max_bytes: 0"));
  EXPECT_THAT(ValidateObjectScan({}, {.max_bytes = kMaxPageBytes + 1}), FailsWith(kInvalid, "max_bytes"));
  EXPECT_OK(ValidateMappingScan({}, {}));
  EXPECT_THAT(ValidateMappingScan({8, 7}, {}), FailsWith(kInvalid, "start_id: 8"));
  EXPECT_THAT(ValidateMappingScan({}, {.limit = 10'001}), FailsWith(kInvalid, "limit: 10001"));
}

}  // namespace
}  // namespace kvstore
