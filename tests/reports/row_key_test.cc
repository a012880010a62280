#include "reports/row_key.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "reports/chunk_number.h"
#include "tests/reports/hex.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Hex;

TEST(RowKey, HasTheseBytes) {
  EXPECT_EQ(
      Hex(EncodeRowKey({.salt = 3, .report = 7, .metric = 0x01020304, .period_start_s = 1'356'998'400})),
      "03"
      "00000007"
      "01020304"
      "0000000050e22700");
  EXPECT_EQ(Hex(MetadataRow("flights")),
            "ff72"
            "666c6967687473");
  EXPECT_EQ(Hex(BatchesRow(7)),
            "ff62"
            "00000007");
  EXPECT_EQ(Hex(CounterRow()), "ff6e");
}

TEST(RowKey, OfRollupsIsThatOfThePointsWithAnotherSalt) {
  const RowKey points{.salt = 3, .report = 7, .metric = 0x01020304, .period_start_s = 1'356'998'400};
  EXPECT_EQ(Hex(EncodeRollupKey(points)),
            "43"
            "00000007"
            "01020304"
            "0000000050e22700");
  EXPECT_EQ(*DecodeRollupKey(EncodeRollupKey(points)), points);
  EXPECT_EQ(*DecodeRollupKey(EncodeRollupKey({.salt = 63})), (RowKey{.salt = 63}));
  for (const std::string& bad : {std::string(), EncodeRowKey(points), EncodeRollupKey(points) + "x",
                                 std::string(17, '\xFF'), "\x80" + std::string(16, '\0')}) {
    EXPECT_THAT(DecodeRollupKey(bad), FailsWith(absl::StatusCode::kDataLoss, "row: not the key of a row"));
  }
  EXPECT_THAT(DecodeRowKey(EncodeRollupKey(points)), FailsWith(absl::StatusCode::kDataLoss, "salt below 64"));
  const KeyRange range = RollupRange(3, 7);
  EXPECT_TRUE(range.start <= EncodeRollupKey(points) && EncodeRollupKey(points) < range.end);
  EXPECT_GT(range.start, EncodeRowKey({.salt = 63, .report = UINT32_MAX}));
  EXPECT_LT(RollupRange(63, UINT32_MAX).end, MetadataRow(""));
}

TEST(RowKey, SortsAsItsFieldsDoAndComesBack) {
  testing::Random random(testing::Seed("row_key"));
  const auto make = [&] {
    return RowKey{static_cast<uint8_t>(random.Below(3)), static_cast<uint32_t>(random.Below(3)),
                  static_cast<uint32_t>(random.Next() >> (32 + random.Below(32))),
                  random.Next() >> random.Below(64)};
  };
  for (int i = 0; i < 2'000; ++i) {
    const RowKey a = make();
    const RowKey b = make();
    EXPECT_EQ(a < b, EncodeRowKey(a) < EncodeRowKey(b));
    ASSERT_OK_AND_ASSIGN(const RowKey back, DecodeRowKey(EncodeRowKey(a)));
    EXPECT_EQ(back, a);
  }
}

TEST(RowKey, RefusesWhatIsNoKeyOfPoints) {
  EXPECT_THAT(DecodeRowKey(""), FailsWith(absl::StatusCode::kDataLoss, "17 bytes"));
  EXPECT_THAT(DecodeRowKey(EncodeRowKey({}) + "x"), FailsWith(absl::StatusCode::kDataLoss, "17 bytes"));
  EXPECT_THAT(DecodeRowKey(std::string(17, '\xFF')), FailsWith(absl::StatusCode::kDataLoss, "salt below 64"));
}

TEST(RowKey, RangesHaveTheirRowsAndNoOthers) {
  const KeyRange range = MetricRange(1, 2, 3, 100, 200);
  const auto has = [&](const RowKey& key) {
    const std::string bytes = EncodeRowKey(key);
    return range.start <= bytes && bytes < range.end;
  };
  EXPECT_TRUE(has({1, 2, 3, 100}));
  EXPECT_TRUE(has({1, 2, 3, 200}));
  EXPECT_FALSE(has({1, 2, 3, 99}));
  EXPECT_FALSE(has({1, 2, 3, 201}));
  EXPECT_FALSE(has({1, 2, 4, 150}));
  EXPECT_FALSE(has({0, 2, 3, 150}));
  const KeyRange report = ReportRange(1, 2);
  EXPECT_LE(report.start, EncodeRowKey({1, 2, 0, 0}));
  EXPECT_GT(report.end, EncodeRowKey({1, 2, UINT32_MAX, UINT64_MAX}));
  EXPECT_LE(report.end, EncodeRowKey({1, 3, 0, 0}));
}

TEST(Salt, DependsOnTheSeriesAloneAndNotOnKeysThatWereAdded) {
  const uint32_t before[] = {5, 0, 9};
  const uint32_t after[] = {5, 0, 9, 0};
  EXPECT_EQ(SaltOf(1, 2, before, 64), SaltOf(1, 2, after, 64));
  EXPECT_EQ(SaltOf(1, 2, before, 1), 0);
  std::set<uint8_t> salts;
  for (uint32_t id = 1; id < 1'000; ++id) {
    const uint32_t segments[] = {id};
    salts.insert(SaltOf(1, 2, segments, 64));
  }
  EXPECT_EQ(salts.size(), 64u) << "all salts are used";
  // Few series already use all of a few salts: the hash has no pattern that neighbouring IDs follow.
  std::set<uint8_t> few;
  for (uint32_t id = 1; id <= 3; ++id) {
    for (uint32_t other = 1; other <= 2; ++other)
      few.insert(SaltOf(1, 0, std::vector<uint32_t>{id, other}, 4));
  }
  EXPECT_EQ(few.size(), 4u);
  // Stored data relies on it.
  const uint32_t golden[] = {1, 2};
  EXPECT_EQ(SaltOf(1, 1, golden, 64), 9);
}

TEST(ChunkNumber, GrowsAndIsUnique) {
  std::string before;
  for (int i = 0; i < 1'000; ++i) {
    const std::string number = NewChunkNumber();
    EXPECT_EQ(number.size(), kChunkNumberBytes);
    EXPECT_LT(before.substr(0, 8), number.substr(0, 8));
    before = number;
  }
  const std::string later = NewChunkNumber(TimeOfName(NameOfPart(before, 0)) + 5'000);
  EXPECT_GT(later, before);
  EXPECT_LT(LeastChunkNumber(TimeOfName(NameOfPart(later, 0))), later);
  EXPECT_EQ(NameOfPart(later, 1).size(), kChunkNameBytes);
}

}  // namespace
}  // namespace kvstore::reports
