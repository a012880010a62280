#include "reports/compaction.h"

#include <gtest/gtest.h>

#include <set>

#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/deletes.h"
#include "reports/row_list.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/report_fixture.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

class CompactionTest : public kvstore::testing::ReportFixture {
 protected:
  void AddToALargeRealNumber(const Number& one);
  /// A point to be added, as Write makes it.
  PointBlock Points(int64_t value) {
    PointBlock block(MetricKind::kValue, 1);
    block.Append(std::vector<uint32_t>{1},
                 {.times = {5'000}, .numbers = {Number::Integer(value)}, .adds = {1}});
    return block;
  }
};

TEST_F(CompactionTest, ManyChunksBecomeOne) {
  for (int i = 0; i < 20; ++i) Write(i, true);
  EXPECT_EQ(Stored().chunks.size(), 20u);
  ASSERT_OK_AND_ASSIGN(const CompactionResult result, CompactReport(metadata_, "r", {}));
  EXPECT_EQ(result.chunks_merged, 20u);
  EXPECT_EQ(result.chunks_written, 1u);
  EXPECT_LT(result.bytes_after, result.bytes_before);
  EXPECT_EQ(Stored().chunks.size(), 1u);
  EXPECT_EQ(Sum(), 190);
  ASSERT_OK_AND_ASSIGN(const CompactionResult again, CompactReport(metadata_, "r", {}));
  EXPECT_EQ(again.chunks_written, 0u);
}

TEST_F(CompactionTest, KilledAtAnyWriteNothingCountsTwice) {
  for (int killed_at = 0; killed_at < 4; ++killed_at) {
    for (int i = 0; i < 3; ++i)
      Write(1, true, "batch " + std::to_string(killed_at) + "." + std::to_string(i));
    const int64_t before = Sum();
    int writes = 0;
    store_.before_write = [&](std::string_view) {
      return writes++ >= killed_at ? absl::UnavailableError("killed") : absl::OkStatus();
    };
    CompactReport(metadata_, "r", {}).IgnoreError();
    store_.before_write = nullptr;
    EXPECT_EQ(Sum(), before) << killed_at;
    // A batch that is repeated now is known, whether its chunk was merged or deleted.
    Write(1, true, "batch " + std::to_string(killed_at) + ".1");
    EXPECT_EQ(Sum(), before) << killed_at;
  }
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  EXPECT_EQ(Sum(), 12);
  EXPECT_EQ(Stored().chunks.size(), 1u);
}

TEST_F(CompactionTest, OfTwoThatRaceOneWins) {
  for (int i = 0; i < 3; ++i) Write(1, true);
  const StoredRow seen = Stored();
  Write(1, true);
  const StoredRow seen_later = Stored();
  CompactionResult first;
  CompactionResult second;
  ASSERT_OK(CompactRow(metadata_, seen_later, {}, first));
  ASSERT_OK(CompactRow(metadata_, seen, {}, second));
  EXPECT_EQ(first.chunks_written, 1u);
  EXPECT_EQ(second.chunks_written, 0u) << "the row had changed hands";
  EXPECT_EQ(Sum(), 4);
}

TEST_F(CompactionTest, WritesThatComeMeanwhileAreNewer) {
  Write(1, false);
  Write(2, false);
  const StoredRow seen = Stored();
  Write(3, false);
  CompactionResult result;
  ASSERT_OK(CompactRow(metadata_, seen, {}, result));
  EXPECT_EQ(result.chunks_written, 1u);
  EXPECT_EQ(Sum(), 3) << "though the compacted chunk was written later";
}

TEST_F(CompactionTest, AWriteBetweenTwoPagesOfTheRowIsNotHidden) {
  store_.page_columns = 2;
  for (int i = 1; i <= 4; ++i) Write(i, true);
  ASSERT_OK_AND_ASSIGN(const std::string late, EncodeChunk(Points(100), {}));
  int pages = 0;
  store_.before_read = [&](std::string_view row) {
    if (++pages != 2) return absl::OkStatus();
    // A writer whose clock is far behind: the name is before all others, and the page with it was read. Then
    // another, whose chunk is on the last page.
    const ChunkName name = NameOfPart(LeastChunkNumber(0), 0);
    const CellWrite cell{name, late, std::nullopt};
    EXPECT_OK(store_.PutRow("reports", row, {&cell, 1}, {}));
    Write(5, true);
    return absl::OkStatus();
  };
  const StoredRow seen = Stored();
  store_.before_read = nullptr;
  EXPECT_EQ(seen.chunks.size(), 5u) << "one was missed";
  const int64_t before = Sum();
  EXPECT_EQ(before, 1 + 2 + 3 + 4 + 5 + 100);
  CompactionResult result;
  ASSERT_OK(CompactRow(metadata_, seen, {}, result));
  EXPECT_EQ(result.chunks_written, 1u);
  EXPECT_EQ(Sum(), before);
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(CompactReport(metadata_, "r", {}));
    EXPECT_EQ(Sum(), before);
  }
}

/// Roll-ups rely on it: the same version, the same points.
TEST_F(CompactionTest, EachPutHasAVersionAndNoCompactionHas) {
  std::set<RowVersion> versions;
  const auto is_new = [&] {
    const StoredRow row = Stored();
    return row.version && versions.insert(*row.version).second;
  };
  Write(1, true, "first");
  EXPECT_TRUE(is_new());
  Write(2, true);
  EXPECT_TRUE(is_new());
  Write(1, true, "first");
  EXPECT_FALSE(is_new()) << "nothing was written";
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  EXPECT_EQ(Stored().chunks.size(), 1u);
  EXPECT_FALSE(is_new());
  Write(1, true, "first");
  EXPECT_TRUE(is_new()) << "a chunk that is covered was written once more, with the name that it had";
  ASSERT_OK(DeletePoints(metadata_, info_, {0, 1}));
  EXPECT_TRUE(is_new());
  // One that was read before the last put, and is written after it, does not bring the old version back.
  Write(3, true);
  const StoredRow seen = Stored();
  Write(4, true);
  EXPECT_TRUE(is_new());
  CompactionResult result;
  ASSERT_OK(CompactRow(metadata_, seen, {}, result));
  EXPECT_EQ(result.chunks_written, 1u);
  EXPECT_FALSE(is_new());
  EXPECT_EQ(Stored().version, *versions.rbegin()) << "the last one";
}

TEST_F(CompactionTest, ARowThatIsRemovedMeanwhileIsListedStill) {
  for (int i = 0; i < 3; ++i) Write(1, true);
  const StoredRow seen = Stored();
  ASSERT_OK(store_.DeleteRow("reports", EncodeRowKey(seen.key), {}));
  CompactionResult result;
  ASSERT_OK(CompactRow(metadata_, seen, {}, result));
  size_t listed = 0;
  ASSERT_OK(ListRows(store_, "reports", ReportRange(0, info_.settings.id), [&](auto rows) {
    listed += rows.size();
    return absl::OkStatus();
  }));
  EXPECT_EQ(listed, Stored().chunks.empty() ? 0u : 1u) << "so that it expires once more";
}

TEST_F(CompactionTest, RowsThatDidNotChangeAreNotRead) {
  for (int i = 0; i < 3; ++i) Write(1, true);
  const uint64_t newest = Stored().version->timestamp;
  ASSERT_OK_AND_ASSIGN(const CompactionResult none,
                       CompactReport(metadata_, "r", {.changed_since_ms = newest + 1}));
  EXPECT_EQ(none.rows, 0u);
  ASSERT_OK_AND_ASSIGN(const CompactionResult one,
                       CompactReport(metadata_, "r", {.changed_since_ms = newest}));
  EXPECT_EQ(one.chunks_merged, 3u);
}

TEST_F(CompactionTest, AWalkThatACutoverCutsOffBeginsAgain) {
  const std::optional<std::string_view> segments[] = {"US"};
  Batch batch(info_);
  for (int64_t day = 0; day < 600; ++day) {
    ASSERT_OK(batch.Add(0, day * 86'400'000, segments, Number::Integer(1)));
  }
  ASSERT_OK(WriteBatch(metadata_, batch, {}));
  int refused = 0;
  store_.before_scan = [&](const ScanOptions& options) {
    return !options.marker.empty() && refused++ == 0
               ? absl::FailedPreconditionError("marker: it is on 'mysql' now. Begin the scan again")
               : absl::OkStatus();
  };
  std::set<RowKey> listed;
  size_t given = 0;
  const auto list = [&] {
    return ListRows(store_, "reports", ReportRange(0, info_.settings.id), [&](auto rows) {
      for (const ListedRow& row : rows) listed.insert(row.key);
      given += rows.size();
      return absl::OkStatus();
    });
  };
  ASSERT_OK(list());
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(listed.size(), 600u);
  EXPECT_GT(given, 600u);
  store_.before_scan = [](const ScanOptions&) { return absl::UnavailableError("MySQL001A is down"); };
  EXPECT_THAT(list(), testing::FailsWith(absl::StatusCode::kUnavailable, "MySQL001A"));
}

TEST_F(CompactionTest, ManyLargeChunksAreMergedInOneGo) {
  for (int i = 0; i < 30; ++i) Write(i, false);
  const size_t size = Stored().chunks[0].bytes.size();
  ASSERT_OK_AND_ASSIGN(const CompactionResult result, CompactReport(metadata_, "r", {.max_bytes = size * 4}));
  EXPECT_EQ(result.rows, 1u);
  EXPECT_GT(result.chunks_written, 3u) << "as long as there is something to be merged";
  EXPECT_LT(result.bytes_after, result.bytes_before);
  EXPECT_EQ(Sum(), 29);
  int pauses = 0;
  EXPECT_THAT(CompactReport(metadata_, "r",
                            {.pause =
                                 [&] {
                                   ++pauses;
                                   return absl::CancelledError("enough");
                                 }}),
              testing::FailsWith(absl::StatusCode::kCancelled, "enough"));
  EXPECT_EQ(pauses, 1);
}

TEST_F(CompactionTest, OnlyNeighboursAreMerged) {
  for (int i = 0; i < 6; ++i) Write(i, true);
  const StoredRow row = Stored();
  ASSERT_OK_AND_ASSIGN(const auto live, LiveChunks(row));
  const size_t size = live[0].chunk.stored_bytes();
  const auto run = ChooseRun(live, size * 3);
  EXPECT_EQ(run.end - run.begin, 3u);
  EXPECT_EQ(ChooseRun(live, size * 100).end, 6u);
  const auto none = ChooseRun(live, size - 1);
  EXPECT_EQ(none.begin, none.end);
  ASSERT_OK(CompactReport(metadata_, "r", {.max_bytes = size * 3}));
  EXPECT_EQ(Sum(), 15);
}

TEST_F(CompactionTest, RealNumbersAreAddedInTheOrderOfTheirWrites) { AddToALargeRealNumber(Number::Real(1)); }

TEST_F(CompactionTest, IntegersAreAddedToARealNumberInTheOrderOfTheirWrites) {
  AddToALargeRealNumber(Number::Integer(1));
}

TEST_F(CompactionTest, IntegersThatAreAddedAreMergedBehindALargeChunk) {
  const std::optional<std::string_view> segments[] = {"US"};
  for (int64_t second = 0; second < 1'000; ++second) {
    Batch batch(info_);
    ASSERT_OK(batch.Add(0, second * 1'000, segments, Number::Integer(second * second)));
    ASSERT_OK(WriteBatch(metadata_, batch, {}));
  }
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  ASSERT_EQ(Stored().chunks.size(), 1u);
  const size_t large = Stored().chunks[0].bytes.size();
  const int64_t before = Sum();
  for (int i = 0; i < 50; ++i) Write(1, true);
  // A delete of what is older stays between the points that are added before it and after it.
  ASSERT_OK(DeletePoints(metadata_, info_, {0, 1'000}));
  for (int i = 0; i < 50; ++i) Write(1, true);
  for (int i = 0; i < 3; ++i) ASSERT_OK(CompactReport(metadata_, "r", {.max_bytes = large}));
  EXPECT_LT(Stored().chunks.size(), 10u);
  EXPECT_EQ(Sum(), before + 100) << "the point that was deleted was a zero";
}

TEST_F(CompactionTest, NamesOfChunksThatCannotComeAgainAreForgotten) {
  for (int i = 0; i < 100; ++i) {
    Write(i, false);
    ASSERT_OK(CompactReport(metadata_, "r", {}));
  }
  const StoredRow row = Stored();
  ASSERT_OK_AND_ASSIGN(const auto live, LiveChunks(row));
  ASSERT_EQ(live.size(), 1u);
  EXPECT_TRUE(live[0].chunk.directory().notes.covers.empty());
  EXPECT_EQ(Sum(), 99);
}

/// Though no chunk names those that are gone by then.
TEST_F(CompactionTest, AReaderOfPagesCountsOnceWhatIsMergedSeveralTimesMeanwhile) {
  store_.page_columns = 2;
  for (int i = 0; i < 7; ++i) Write(1, true);
  int pages = 0;
  store_.before_read = [&](std::string_view row) {
    if (row != Row() || ++pages != 2) return absl::OkStatus();
    const auto result = CompactReport(metadata_, "r", {});
    EXPECT_OK(result);
    EXPECT_GT(result->chunks_written, 1u);
    return absl::OkStatus();
  };
  EXPECT_EQ(Sum(), 7);
  store_.before_read = nullptr;
  EXPECT_EQ(Stored().chunks.size(), 1u);
  EXPECT_EQ(Sum(), 7);
}

/// Adds to a number that is so large that each addition is lost in rounding.
void CompactionTest::AddToALargeRealNumber(const Number& one) {
  const std::optional<std::string_view> segments[] = {"US"};
  Batch first(info_);
  ASSERT_OK(first.Add(0, 5'000, segments, Number::Real(1e17)));
  // So large that it is not merged with what comes.
  for (int64_t i = 6; i < 1'000; ++i)
    ASSERT_OK(first.Add(0, i * 1'000, segments, Number::Integer(i * i * i * i * i)));
  ASSERT_OK(WriteBatch(metadata_, first, {}));
  for (int i = 0; i < 16; ++i) {
    Batch batch(info_);
    ASSERT_OK(batch.Add(0, 5'000, segments, one));
    ASSERT_OK(WriteBatch(metadata_, batch, {.add = true}));
  }
  const auto sum = [&] {
    auto result =
        RunQuery(metadata_, {.report = "r", .metrics = {{.name = "clicks"}}, .from = 0, .to = 6'000});
    EXPECT_OK(result);
    return result->series[0].points[0].second.AsReal();
  };
  EXPECT_EQ(sum(), 1e17) << "each one is lost in rounding, where all of them together are not";
  const size_t size = Stored().chunks[0].bytes.size();
  ASSERT_GT(size, Stored().chunks[1].bytes.size() * 16);
  ASSERT_OK(CompactReport(metadata_, "r", {.max_bytes = size - 1}));
  EXPECT_EQ(sum(), 1e17);
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  EXPECT_EQ(Stored().chunks.size(), 1u);
  EXPECT_EQ(sum(), 1e17);
}

TEST_F(CompactionTest, APointThatOverflowsDoesNotStopTheOthers) {
  Write(INT64_MAX, false);
  Write(1, true);
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  EXPECT_EQ(Stored().chunks.size(), 2u);
  Write(7, false);
  ASSERT_OK(CompactReport(metadata_, "r", {}));
}

TEST_F(CompactionTest, ListedAndScannedRowsAreTheSame) {
  for (int i = 0; i < 5; ++i) Write(i, true);
  const RowsWanted wanted{.salt = 0,
                          .report = info_.settings.id,
                          .metric = info_.metrics[0].id,
                          .first_period_s = 0,
                          .last_period_s = 86'400 * 40,
                          .period_s = 86'400};
  std::vector<size_t> chunks;
  const auto take = [&](StoredRow&& row) {
    chunks.push_back(row.chunks.size());
    return absl::OkStatus();
  };
  ASSERT_OK(ReadRows(store_, "reports", wanted, take, nullptr, nullptr, /*max_listed=*/1'000));
  EXPECT_EQ(store_.counts().scans, 0u);
  ASSERT_OK(ReadRows(store_, "reports", wanted, take, nullptr, nullptr, /*max_listed=*/1));
  EXPECT_EQ(store_.counts().scans, 1u);
  EXPECT_EQ(chunks, (std::vector<size_t>{5, 5}));
}

TEST_F(CompactionTest, DamageNamesTheRow) {
  Write(1, false);
  const StoredRow row = Stored();
  std::string bytes = row.chunks[0].bytes;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const CellWrite cell{row.chunks[0].name, bytes, std::nullopt};
  ASSERT_OK(store_.PutRow("reports", EncodeRowKey(row.key), {&cell, 1}, {}));
  EXPECT_THAT(
      RunQuery(metadata_, {.report = "r", .metrics = {{.name = "clicks"}}, .from = 0, .to = 86'400'000}),
      testing::FailsWith(absl::StatusCode::kDataLoss, "row of report 1, metric 0, period 0, salt 0"));
}

}  // namespace
}  // namespace kvstore::reports
