#include "wire/message_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "kvstore_api/limits.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using wire::CountEntries;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename Message>
absl::StatusOr<size_t> Count(const Message& message) {
  return CountEntries(*Message::descriptor(), message.SerializeAsString());
}

TEST(MessageLimits, EntriesOfListsInListsAreCounted) {
  v1::PutRowsRequest request;
  request.set_dataset("rows");
  for (int row = 0; row < 3; ++row) {
    v1::RowWrite& write = *request.add_writes();
    write.mutable_condition()->set_column("c");
    for (int cell = 0; cell < 5; ++cell) write.add_cells()->set_value("v");
  }
  EXPECT_EQ(*Count(request), 3U + 3 * 5);
}

TEST(MessageLimits, PackedAndUnknownFieldsAreCounted) {
  v1::GetObjectsRequest request;
  for (uint64_t id = 1; id <= 7; ++id) request.add_ids(id);
  EXPECT_EQ(*Count(request), 7U);
  // Not packed, as older encoders may send repeated numbers.
  const std::string alone = "\x11" + std::string(8, 'i');
  EXPECT_EQ(*CountEntries(*v1::GetObjectsRequest::descriptor(), alone + alone), 2U);
  const std::string_view unknown("\x7a\x01x\x78\x05", 5);
  EXPECT_EQ(*CountEntries(*v1::GetObjectsRequest::descriptor(), unknown), 2U);
}

TEST(MessageLimits, EachListHasItsLimit) {
  v1::PutRowRequest put;
  for (size_t i = 0; i < kMaxPageCells; ++i) put.add_cells();
  EXPECT_EQ(*Count(put), kMaxPageCells);
  put.add_cells();
  EXPECT_THAT(Count(put), FailsWith(kInvalid, "cells: more than 100000"));

  v1::PutRowsRequest batch;
  for (size_t i = 0; i < kMaxBatchRows; ++i) batch.add_writes();
  EXPECT_EQ(*Count(batch), kMaxBatchRows);
  batch.add_writes();
  EXPECT_THAT(Count(batch), FailsWith(kInvalid, "writes: more than 10000"));
}

TEST(MessageLimits, AllListsTogetherHaveOne) {
  v1::PutRowsRequest request;
  for (int row = 0; row < 11; ++row) {
    v1::RowWrite& write = *request.add_writes();
    for (size_t cell = 0; cell < kMaxPageCells; ++cell) write.add_cells();
  }
  EXPECT_THAT(Count(request), FailsWith(kInvalid, "the message: more than 1000000"));
}

TEST(MessageLimits, ColumnsOfReportsCountByTheirNumbers) {
  v1::WritePointsRequest request;
  v1::ValuePoints& points = *request.mutable_values();
  for (size_t point = 0; point < kMaxPageCells; ++point) {
    points.add_series(0);
    points.add_times(1);
    points.mutable_values()->add_integers(1);
  }
  EXPECT_EQ(*Count(request), 3 * kMaxPageCells / wire::kNumbersOfEntry);
  // A series of its own for each point, with the most keys that a report has.
  for (int key = 0; key < 16; ++key) {
    v1::SegmentColumn& column = *request.add_keys();
    for (size_t series = 0; series < kMaxPageCells; ++series) column.add_series_values(1);
  }
  EXPECT_OK(Count(request).status());
  points.add_times(1);
  EXPECT_THAT(Count(request), FailsWith(kInvalid, "times: more than 100000"));
  points.mutable_times()->RemoveLast();
  // Texts count as entries of any message.
  for (int key = 0; key < 16; ++key) {
    for (size_t value = 0; value < kMaxPageCells; ++value) request.mutable_keys(key)->add_values("v");
  }
  EXPECT_THAT(Count(request), FailsWith(kInvalid, "the message: more than 1000000"));
}

TEST(MessageLimits, AUnitThatMovesMayHaveManyCells) {
  v1::EndpointRequest request;
  v1::Unit& unit = *request.mutable_replace()->add_units();
  for (size_t cell = 0; cell < 1'500'000; ++cell) unit.add_cells();
  EXPECT_OK(Count(request).status());
}

TEST(MessageLimits, BytesOfNoMessageAreNoError) {
  v1::PutRowsRequest request;
  for (int row = 0; row < 3; ++row) request.add_writes()->add_cells()->set_value("value");
  const std::string bytes = request.SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_OK(
        CountEntries(*v1::PutRowsRequest::descriptor(), std::string_view(bytes).substr(0, size)).status());
  }
  testing::Random random(testing::Seed("MessageLimits"));
  for (int round = 0; round < 100'000; ++round) {
    std::string other = bytes;
    for (int i = 0; i < 3; ++i) other[random.Below(other.size())] = static_cast<char>(random.Next());
    EXPECT_OK(CountEntries(*v1::PutRowsRequest::descriptor(), other).status());
  }
}

}  // namespace
}  // namespace kvstore
