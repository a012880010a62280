#include "reports/batch_memory.h"

#include <gtest/gtest.h>

#include "base/shift_clock.h"
#include "reports/chunk_number.h"
#include "reports/compaction.h"
#include "reports/row_cells.h"
#include "reports/writer.h"
#include "tests/reports/report_fixture.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;

/// The clock of this process differs while there is one of these.
class ShiftedClock {
 public:
  explicit ShiftedClock(int64_t ms) { ShiftWallClock(ms); }
  ~ShiftedClock() { ShiftWallClock(0); }
  ShiftedClock(const ShiftedClock&) = delete;
  ShiftedClock& operator=(const ShiftedClock&) = delete;
};

class BatchMemoryTest : public kvstore::testing::ReportFixture {
 protected:
  void Add(int64_t value, const std::string& batch_id = "") { Write(value, true, batch_id); }
  void Compact() { ASSERT_OK(CompactReport(metadata_, "r", {})); }
  /// The names that the only live chunk keeps.
  std::vector<ChunkName> Covers() {
    const StoredRow row = Stored();
    const auto live = LiveChunks(row);
    EXPECT_OK(live);
    EXPECT_EQ(live->size(), 1u);
    return live->front().chunk.directory().notes.covers;
  }
  uint64_t TimestampOf(const std::string& batch) {
    const CellsWanted wanted{BatchesRow(info_.settings.id), {batch}};
    const auto cells = ReadCells(store_, "reports", {&wanted, 1});
    EXPECT_OK(cells);
    return cells->front()->at(batch).timestamp;
  }
};

TEST_F(BatchMemoryTest, ABatchHasOneNumberWhateverTheClocksOfItsLoaders) {
  std::string number;
  for (const int64_t days : {-40, 0, 40}) {
    const ShiftedClock clock(days * kDayMs);
    ASSERT_OK_AND_ASSIGN(const std::string again, NumberOfBatch(metadata_, info_.settings.id, "b", 77));
    ASSERT_EQ(again.size(), kChunkNumberBytes);
    if (number.empty()) number = again;
    EXPECT_EQ(again, number);
  }
  EXPECT_EQ(TimeOfName(NameOfPart(number, 0)), TimestampOf("b")) << "the time is the store's";
  ASSERT_OK_AND_ASSIGN(const std::string other, NumberOfBatch(metadata_, info_.settings.id, "c", 77));
  EXPECT_NE(other, number);
  EXPECT_THAT(NumberOfBatch(metadata_, info_.settings.id, "b", 78),
              FailsWith(absl::StatusCode::kFailedPrecondition, "batch 'b': it was written before"));
  EXPECT_THAT(NumberOfBatch(metadata_, info_.settings.id, "\n", 77),
              FailsWith(absl::StatusCode::kInvalidArgument, "batch"));
}

/// A month behind or ahead: that is longer than any chunk remembers what it covers.
TEST_F(BatchMemoryTest, ABatchCountsOnceWhateverTheClocksOfLoadersAndCompactions) {
  int64_t expected = 0;
  for (const int64_t loader_days : {-40, 40}) {
    for (const int64_t compaction_days : {-40, 0, 40}) {
      const std::string batch = std::to_string(loader_days) + "/" + std::to_string(compaction_days);
      expected += 5;
      for (int i = 0; i < 4; ++i) {
        {
          const ShiftedClock clock(loader_days * kDayMs);
          Add(5, batch);
        }
        Add(1);
        expected += 1;
        const ShiftedClock clock(compaction_days * kDayMs);
        Compact();
      }
      ASSERT_EQ(Sum(), expected) << batch;
    }
  }
}

TEST_F(BatchMemoryTest, ABatchIsKnownUntilTheStoreHasOneOfThirtyDaysLater) {
  Add(5, "old");
  Add(1);
  Compact();
  store_.AdvanceClock(29 * kDayMs);
  Add(1, "late");
  Compact();
  Add(5, "old");
  EXPECT_EQ(Sum(), 5 + 1 + 1);
  Compact();
  // Time alone makes nothing be forgotten: without another batch nothing more has to be remembered.
  store_.AdvanceClock(10 * kDayMs);
  Compact();
  Add(5, "old");
  EXPECT_EQ(Sum(), 5 + 1 + 1);
  Add(1, "later");
  Compact();
  EXPECT_EQ(Sum(), 5 + 1 + 1 + 1);
  Add(5, "old");
  EXPECT_EQ(Sum(), 5 + 1 + 1 + 1 + 5) << "it is a new batch by now";
  Add(1, "late");
  EXPECT_EQ(Sum(), 5 + 1 + 1 + 1 + 5) << "the store has taken it only ten days before the last one";
}

TEST_F(BatchMemoryTest, AChunkForgetsTheNamesOfBatchesThatAreForgotten) {
  Add(1, "old");
  Add(1);
  Compact();
  EXPECT_EQ(Covers().size(), 1u) << "a batch without an ID cannot come again";
  // The batch is forgotten a day before the names of its chunks.
  store_.AdvanceClock(30 * kDayMs + kDayMs / 2);
  Add(1, "new");
  Compact();
  EXPECT_EQ(Covers().size(), 2u);
  store_.AdvanceClock(kDayMs);
  Add(1, "newer");
  Compact();
  EXPECT_EQ(Covers().size(), 2u);
  EXPECT_EQ(Sum(), 4);
}

TEST_F(BatchMemoryTest, DamageNamesTheBatch) {
  const CellWrite cell{"b", "too short", std::nullopt};
  ASSERT_OK(store_.PutRow("reports", BatchesRow(info_.settings.id), {&cell, 1}, {}));
  EXPECT_THAT(NumberOfBatch(metadata_, info_.settings.id, "b", 77),
              FailsWith(absl::StatusCode::kDataLoss, "batch 'b'"));
}

}  // namespace
}  // namespace kvstore::reports
