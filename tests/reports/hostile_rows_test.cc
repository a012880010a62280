#include <gtest/gtest.h>

#include <cmath>

#include "base/big_endian.h"
#include "base/clock.h"
#include "reports/bits.h"
#include "reports/byte_reader.h"
#include "reports/chunk.h"
#include "reports/chunk_directory.h"
#include "reports/chunk_number.h"
#include "reports/compaction.h"
#include "reports/crc32c.h"
#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/report_fixture.h"
#include "tests/support/status_matchers.h"

/// Cells that decode, but that no writer of reports would write: whoever may write to the dataset can.
namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;

class HostileRowsTest : public kvstore::testing::ReportFixture {
 protected:
  void SetUp() override {
    ReportFixture::SetUp();
    Write(1, false);
  }
  void Put(const std::string& row, const std::string& column, const std::string& value) {
    const CellWrite cell{column, value, std::nullopt};
    ASSERT_OK(store_.PutRow("reports", row, {&cell, 1}, {}));
  }
  /// A chunk of sets with a point where the report has a number.
  static std::string ChunkOfSets() {
    PointBlock block(MetricKind::kDistinct, 1);
    block.Append(std::vector<uint32_t>{1},
                 {.times = {5'000}, .sketches = {HyperLogLog().Encode()}, .adds = {1}});
    return *EncodeChunk(block, {});
  }
};

TEST_F(HostileRowsTest, ChunksOfAnotherKindAreDamage) {
  Put(Row(), NameOfPart(NewChunkNumber(), 0), ChunkOfSets());
  EXPECT_THAT(Ask(), FailsWith(absl::StatusCode::kDataLoss, "kind"));
  EXPECT_THAT(CompactReport(metadata_, "r", {}), FailsWith(absl::StatusCode::kDataLoss, "kind"));
}

TEST_F(HostileRowsTest, ARowOfAnotherKindIsDamage) {
  Put(MetadataRow("r"), "metric/clicks", R"({"id":0,"kind":"distinct"})");
  EXPECT_THAT(RunQuery(metadata_, {.report = "r",
                                   .metrics = {{.name = "clicks"}},
                                   .from = 0,
                                   .to = 86'400'000,
                                   .function = *ParseFunction("function", "distinct")}),
              FailsWith(absl::StatusCode::kDataLoss, "is of kind distinct"));
}

TEST_F(HostileRowsTest, ChunksThatGrowWhenTheyAreDecompressedAreRefusedTogether) {
  // Nothing is decompressed: the directories say enough.
  const std::string packed = EncodeDirectory({.kind = MetricKind::kValue,
                                              .series = 1,
                                              .points = 1,
                                              .min_time = 5'000,
                                              .max_time = 5'000,
                                              .segment_values = {{1}},
                                              .body_bytes = kMaxChunkBodyBytes});
  std::string rest;
  AppendVarint(rest, packed.size());
  rest += packed + "no frame of zstd";
  std::string bytes = {1, 1};
  AppendBigEndian(bytes, Crc32c(rest, Crc32c(bytes)));
  bytes += rest;
  ASSERT_OK(Chunk::Open(bytes));
  for (uint16_t i = 0; i < 10; ++i) Put(Row(), NameOfPart(LeastChunkNumber(i), 0), bytes);
  EXPECT_THAT(Ask(), FailsWith(absl::StatusCode::kResourceExhausted, "when they are decompressed"));
}

TEST_F(HostileRowsTest, ANameOfTheFutureDoesNotMoveTheNamesOfOthers) {
  Put(Row(), NameOfPart(LeastChunkNumber((uint64_t{1} << 48) - 2), 0),
      *EncodeChunk(PointBlock(MetricKind::kValue, 0), {.deletes = {{1, 2}}}));
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  EXPECT_OK(Ask());
  const uint64_t now = WallClockMs();
  const ChunkName name = NameOfPart(NewChunkNumber(), 0);
  EXPECT_LT(TimeOfName(name), now + uint64_t{3'600'000})
      << "the numbers of all reports of this process would never be forgotten";
}

TEST_F(HostileRowsTest, ACounterThatIsTooGreatIsFoundOutByTheFirstMissingValue) {
  Put(MetadataRow("r"), "next/value/0", "4294967295");
  store_.ResetCounts();
  EXPECT_THAT(metadata_.AllValues("r", 0), FailsWith(absl::StatusCode::kDataLoss, "never given"));
  EXPECT_LT(store_.counts().columns_named, 10'000u) << "four billion names would not fit into memory";
}

TEST_F(HostileRowsTest, NoNumberIsGivenBehindTheLastOne) {
  Put(MetadataRow("r"), "next/value/0", "4294967295");
  EXPECT_THAT(metadata_.GiveValues("r", 0, std::vector<std::string>{"CA"}),
              FailsWith(absl::StatusCode::kResourceExhausted, "segment values"));
  Put(MetadataRow("r"), "next/metric", "4294967294");
  const Metric metrics[] = {{.name = "a"}, {.name = "b"}};
  EXPECT_THAT(metadata_.AddMetrics("r", metrics), FailsWith(absl::StatusCode::kResourceExhausted, "metrics"));
  EXPECT_OK(metadata_.AddMetrics("r", {metrics, 1}));
  Put(CounterRow(), "next", "4294967295");
  EXPECT_THAT(metadata_.Create({.name = "another"}),
              FailsWith(absl::StatusCode::kResourceExhausted, "IDs of reports"));
}

TEST(HostileSketches, FullRegistersHaveAFiniteEstimate) {
  BitWriter ranks;
  for (size_t i = 0; i < HyperLogLog::kRegisters; ++i) ranks.Write(53, 6);
  ASSERT_OK_AND_ASSIGN(const HyperLogLog sketch,
                       HyperLogLog::Decode(std::string("\x01\x01") + std::move(ranks).Finish()));
  EXPECT_TRUE(std::isfinite(sketch.Estimate()));
  EXPECT_GT(std::llround(sketch.Estimate()), 0);
}

/// A distribution of so many zeros.
std::string Zeros(uint64_t count) {
  std::string bytes = "\x01";
  AppendVarint(bytes, count);
  return bytes + std::string(2 + 16, '\0');
}

TEST(HostileSketches, CountsStayIntegersOf64Bits) {
  EXPECT_THAT(QuantileSketch::Decode(Zeros(uint64_t{1} << 63)), FailsWith(absl::StatusCode::kDataLoss, ""));
  ASSERT_OK_AND_ASSIGN(QuantileSketch sketch, QuantileSketch::Decode(Zeros(uint64_t{1} << 62)));
  const QuantileSketch other = sketch;
  EXPECT_THAT(sketch.Merge(other), FailsWith(absl::StatusCode::kFailedPrecondition, "2^63"));
  ASSERT_OK_AND_ASSIGN(const QuantileSketch most, QuantileSketch::Decode(Zeros((uint64_t{1} << 63) - 1)));
  EXPECT_GT(static_cast<int64_t>(most.count()), 0);
}

}  // namespace
}  // namespace kvstore::reports
