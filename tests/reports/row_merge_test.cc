#include "reports/row_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

/// A row with chunks of the series 1 to 9, whose points are integers.
class RowMergeTest : public ::testing::Test {
 protected:
  /// A chunk with a point at `time` of each of these series.
  void AddChunk(const std::vector<uint32_t>& series, int64_t time, std::vector<TimeSpan> deletes = {}) {
    PointBlock block(MetricKind::kValue, 1);
    for (const uint32_t one : series) {
      block.Append(std::vector<uint32_t>{one},
                   {.times = {time}, .numbers = {Number::Integer(one)}, .sketches = {}, .adds = {0}});
    }
    auto bytes = EncodeChunk(block, {.deletes = std::move(deletes)});
    ASSERT_OK(bytes);
    const auto number = static_cast<char>('a' + row_.chunks.size());
    row_.chunks.push_back({std::string(kChunkNameBytes, number), row_.chunks.size() + 1, *std::move(bytes)});
  }

  /// Each series of the row, and whether it has a reader of its own.
  std::map<uint32_t, bool> Readers() {
    std::map<uint32_t, bool> readers;
    const auto live = LiveChunks(row_);
    EXPECT_OK(live);
    const auto merge = RowMerge::Make(*live, 1, nullptr);
    EXPECT_OK(merge);
    while (true) {
      const auto more = (*merge)->Next();
      EXPECT_OK(more);
      if (!more.value_or(false)) return readers;
      readers[(*merge)->segments()[0]] = (*merge)->only_reader() != nullptr;
      SeriesPoints points;
      EXPECT_OK((*merge)->Read(points));
      EXPECT_GT(points.size(), 0u);
    }
  }

  StoredRow row_;
};

TEST_F(RowMergeTest, ASeriesOfOneChunkCanBeReadThere) {
  AddChunk({1, 3, 5}, 1'000);
  EXPECT_EQ(Readers(), (std::map<uint32_t, bool>{{1, true}, {3, true}, {5, true}}));
  AddChunk({2, 3}, 2'000);
  EXPECT_EQ(Readers(), (std::map<uint32_t, bool>{{1, true}, {2, true}, {3, false}, {5, true}}));
  AddChunk({3, 5}, 3'000);
  EXPECT_EQ(Readers(), (std::map<uint32_t, bool>{{1, true}, {2, true}, {3, false}, {5, false}}));
}

TEST_F(RowMergeTest, ADeleteAllowsNone) {
  AddChunk({1, 3}, 1'000);
  AddChunk({}, 0, {{5'000, 6'000}});
  EXPECT_EQ(Readers(), (std::map<uint32_t, bool>{{1, false}, {3, false}}));
}

}  // namespace
}  // namespace kvstore::reports
