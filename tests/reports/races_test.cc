#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "reports/chunk_number.h"
#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/row_puts.h"
#include "reports/rows.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/clicks_report.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

/// Loaders, compactions and drops that meet in the middle of each other.
namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::MemoryStore;

constexpr int64_t kDayMs = 86'400'000;

/// A store in which the rest of the first row that a scan returns in pieces may be deleted between two of
/// them.
class CutStore : public MemoryStore {
 public:
  /// Called once, after the first piece of a row.
  std::function<void(const std::string& row)> behind_first_piece;

  absl::StatusOr<std::unique_ptr<RowCursor>> ScanRows(std::string_view dataset, const RowRange& range,
                                                      const ScanOptions& options) override {
    auto whole = MemoryStore::ScanRows(dataset, range, options);
    if (!whole.ok() || behind_first_piece == nullptr) return whole;
    return std::make_unique<CutCursor>(*this, *std::move(whole));
  }

 private:
  class CutCursor : public RowCursor {
   public:
    CutCursor(CutStore& store, std::unique_ptr<RowCursor> whole) : store_(store), whole_(std::move(whole)) {}
    absl::StatusOr<bool> Next(ScannedRow& row) override {
      auto more = whole_->Next(row);
      // A store that reads on in a row of which nothing is left goes on with the next row.
      while (more.ok() && *more && row.key == cut_) more = whole_->Next(row);
      if (more.ok() && *more && row.continues && store_.behind_first_piece != nullptr) {
        cut_ = row.key;
        std::exchange(store_.behind_first_piece, nullptr)(row.key);
      }
      return more;
    }
    std::string marker() const override { return whole_->marker(); }

   private:
    CutStore& store_;
    std::unique_ptr<RowCursor> whole_;
    std::string cut_;
  };
};

/// A report with one series and daily rows.
class RacesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(info_, metadata_.Create(testing::ClicksReport())); }

  absl::Status Write(int64_t day, int64_t value, const std::string& country = "US",
                     const std::string& batch_id = "") {
    Batch batch(info_);
    const std::optional<std::string_view> segments[] = {country};
    if (auto status = batch.Add(0, day * kDayMs, segments, Number::Integer(value)); !status.ok())
      return status;
    return WriteBatch(metadata_, batch, {.batch = batch_id, .add = true}).status();
  }
  /// Drops the report before the next write of a row, once.
  void DropBeforeWriteOf(const std::string& row) {
    store_.before_write = [this, row, dropped = false](std::string_view written) mutable {
      if (written == row && !std::exchange(dropped, true)) {
        EXPECT_OK(DropReport(metadata_, "r"));
      }
      return absl::OkStatus();
    };
  }
  void ExpectNothingLeft() {
    store_.before_write = nullptr;
    EXPECT_THAT(metadata_.Get("r", {}), FailsWith(absl::StatusCode::kNotFound, "'r'")) << "it was dropped";
    for (const std::string& row : {RowOfDay(0), RowOfDay(3), BatchesRow(info_.settings.id)}) {
      ASSERT_OK_AND_ASSIGN(const Row left, store_.GetRow("reports", row, {}));
      EXPECT_TRUE(left.items.empty()) << "nobody would ever find this row again";
    }
  }
  /// By country and day.
  std::map<std::string, std::vector<TimeValue>> Clicks() {
    auto result = RunQuery(metadata_, {.report = "r",
                                       .metrics = {{.name = "clicks"}},
                                       .from = 0,
                                       .to = 10 * kDayMs,
                                       .step = *ParseStep("1d"),
                                       .group_by = {"country"}});
    EXPECT_OK(result);
    std::map<std::string, std::vector<TimeValue>> clicks;
    if (!result.ok()) return clicks;
    for (const ResultSeries& series : result->series) clicks[series.segments[0].second] = series.points;
    return clicks;
  }
  std::string RowOfDay(int64_t day) const {
    return EncodeRowKey({0, info_.settings.id, info_.metrics[0].id, static_cast<uint64_t>(day) * 86'400});
  }

  CutStore store_;
  Metadata metadata_{store_, "reports"};
  ReportInfo info_;
};

TEST_F(RacesTest, ALoaderOfADroppedReportIsRefused) {
  ASSERT_OK(Write(0, 1));
  ASSERT_OK(DropReport(metadata_, "r"));
  EXPECT_THAT(Write(0, 1), FailsWith(absl::StatusCode::kNotFound, "'r'"));
  ASSERT_OK(metadata_.Create(testing::ClicksReport()));
  EXPECT_THAT(Write(0, 1), FailsWith(absl::StatusCode::kFailedPrecondition, "created again"))
      << "points under the old ID would be lost";
  EXPECT_TRUE(Clicks().empty());
}

TEST_F(RacesTest, ALoaderOfADroppedReportLeavesNothingToTheNextOne) {
  ASSERT_OK(Write(0, 1, "US"));
  // The loader has looked at the report; then the report is dropped; then the loader asks for an ID.
  int reads = 0;
  store_.before_read = [&](std::string_view row) {
    if (row == MetadataRow("r") && ++reads == 2) {
      EXPECT_OK(DropReport(metadata_, "r"));
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(Write(0, 1, "CA"), FailsWith(absl::StatusCode::kNotFound, "'r'"));
  store_.before_read = nullptr;
  ASSERT_OK_AND_ASSIGN(info_, metadata_.Create(testing::ClicksReport()));
  ASSERT_OK(Write(0, 10, "MX"));
  ASSERT_OK(Write(0, 20, "CA"));
  const auto clicks = Clicks();
  ASSERT_EQ(clicks.size(), 2u) << "two values have two IDs";
  EXPECT_EQ(clicks.at("MX")[0].second, Number::Integer(10));
  EXPECT_EQ(clicks.at("CA")[0].second, Number::Integer(20));
}

TEST_F(RacesTest, ADropFindsWhatALoaderWritesMeanwhile) {
  ASSERT_OK(Write(0, 1));
  bool written = false;
  store_.before_write = [&](std::string_view row) {
    if (row == BatchesRow(info_.settings.id) && !std::exchange(written, true)) {
      // All rows were deleted by now, and the report is still there.
      EXPECT_OK(Write(3, 7));
    }
    return absl::OkStatus();
  };
  ASSERT_OK(DropReport(metadata_, "r"));
  EXPECT_TRUE(written);
  store_.before_write = nullptr;
  ASSERT_OK_AND_ASSIGN(const Row left, store_.GetRow("reports", RowOfDay(3), {}));
  EXPECT_TRUE(left.items.empty()) << "nobody would ever find this row again";
}

TEST_F(RacesTest, ALoaderTakesBackWhatItPutsBehindADrop) {
  ASSERT_OK(Write(0, 1));
  DropBeforeWriteOf(RowOfDay(3));
  EXPECT_THAT(Write(3, 7), FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"));
  ExpectNothingLeft();
}

TEST_F(RacesTest, ALoaderTakesBackTheNameOfItsBatchToo) {
  ASSERT_OK(Write(0, 1));
  DropBeforeWriteOf(BatchesRow(info_.settings.id));
  EXPECT_THAT(Write(3, 7, "US", "batch"), FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"));
  ExpectNothingLeft();
}

TEST_F(RacesTest, ALoaderThatFailsTakesBackWhatItPutsBehindADrop) {
  ASSERT_OK(Write(0, 1));
  Batch batch(info_);
  const std::optional<std::string_view> segments[] = {"US"};
  for (const int64_t day : {3, 4}) ASSERT_OK(batch.Add(0, day * kDayMs, segments, Number::Integer(1)));
  bool dropped = false;
  store_.before_write = [&](std::string_view row) {
    if (row == RowOfDay(4)) return absl::UnavailableError("lost");
    if (row == RowOfDay(3) && !std::exchange(dropped, true)) {
      EXPECT_OK(DropReport(metadata_, "r"));
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(WriteBatch(metadata_, batch, {}), FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"))
      << "the repetition would be told so, and find nothing to take back";
  ExpectNothingLeft();
}

TEST_F(RacesTest, ACompactionBringsNoRowOfADroppedReportBack) {
  for (int i = 0; i < 3; ++i) ASSERT_OK(Write(0, 1));
  // It has read the row, and is about to put what it has made of it.
  DropBeforeWriteOf(RowOfDay(0));
  EXPECT_THAT(CompactReport(metadata_, "r", {}), FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"));
  ExpectNothingLeft();
}

TEST_F(RacesTest, ADeleteBringsNoRowOfADroppedReportBack) {
  ASSERT_OK(Write(0, 1));
  DropBeforeWriteOf(RowOfDay(0));
  EXPECT_THAT(DeletePoints(metadata_, info_, {0, kDayMs}),
              FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"));
  ExpectNothingLeft();
}

TEST_F(RacesTest, AReportThatIsMadeAgainMeanwhileKeepsItsRows) {
  ASSERT_OK(Write(0, 1));
  const ReportInfo old = info_;
  bool dropped = false;
  store_.before_write = [&](std::string_view row) {
    if (row != EncodeRowKey({0, old.settings.id, old.metrics[0].id, 3 * 86'400})) return absl::OkStatus();
    if (std::exchange(dropped, true)) return absl::OkStatus();
    EXPECT_OK(DropReport(metadata_, "r"));
    auto again = metadata_.Create(testing::ClicksReport());
    EXPECT_OK(again);
    info_ = *std::move(again);
    return Write(3, 20);
  };
  Batch batch(old);
  const std::optional<std::string_view> segments[] = {"US"};
  ASSERT_OK(batch.Add(0, 3 * kDayMs, segments, Number::Integer(7)));
  EXPECT_THAT(WriteBatch(metadata_, batch, {}), FailsWith(absl::StatusCode::kNotFound, "'r' was dropped"));
  store_.before_write = nullptr;
  EXPECT_EQ(Clicks(),
            (std::map<std::string, std::vector<TimeValue>>{{"US", {{3 * kDayMs, Number::Integer(20)}}}}));
}

/// The dataset was dropped and made again, and its IDs with it.
TEST_F(RacesTest, AnotherReportWithTheIdKeepsItsRows) {
  ASSERT_OK(Write(0, 1));
  ReportInfo old = info_;
  old.name = "gone";
  EXPECT_OK(RemoveIfDropped(metadata_, old));
  EXPECT_EQ(Clicks().size(), 1u);
}

TEST_F(RacesTest, AStoreThatDoesNotAnswerLosesNoPoints) {
  ASSERT_OK(Write(0, 1));
  bool written = false;
  store_.before_write = [&](std::string_view row) {
    written = written || row == RowOfDay(3);
    return absl::OkStatus();
  };
  store_.before_read = [&](std::string_view) {
    return written ? absl::UnavailableError("away") : absl::OkStatus();
  };
  EXPECT_OK(Write(3, 7)) << "whether the report is still there is not known, and it was written";
  store_.before_write = nullptr;
  store_.before_read = nullptr;
  EXPECT_EQ(Clicks().at("US").size(), 2u);
}

TEST_F(RacesTest, ARowThatIsDeletedInAScanTakesNothingFromTheNextOne) {
  store_.page_columns = 2;
  for (int i = 0; i < 5; ++i) ASSERT_OK(Write(0, 1));
  for (int i = 0; i < 3; ++i) ASSERT_OK(Write(1, 100));
  store_.behind_first_piece = [&](const std::string& row) {
    EXPECT_EQ(row, RowOfDay(0));
    EXPECT_OK(store_.DeleteRow("reports", row, {}));
  };
  std::vector<std::pair<uint64_t, size_t>> rows;
  ASSERT_OK(ScanStoredRows(store_, "reports", ReportRange(0, info_.settings.id), [&](StoredRow&& row) {
    rows.emplace_back(row.key.period_start_s, row.chunks.size());
    return absl::OkStatus();
  }));
  EXPECT_FALSE(store_.behind_first_piece) << "the row was cut";
  const std::vector<std::pair<uint64_t, size_t>> left = {{86'400, 3}};
  EXPECT_EQ(rows, left);
}

TEST_F(RacesTest, TheLastRowOfAScanMayBeDeletedToo) {
  store_.page_columns = 2;
  for (int i = 0; i < 5; ++i) ASSERT_OK(Write(0, 1));
  store_.behind_first_piece = [&](const std::string& row) {
    // All but the last chunk: what is left is read again.
    ASSERT_OK_AND_ASSIGN(const StoredRow stored, ReadStoredRow(store_, "reports", *DecodeRowKey(row)));
    DeleteOptions most{.columns = std::vector<std::string>()};
    for (size_t i = 0; i + 1 < stored.chunks.size(); ++i) most.columns->push_back(stored.chunks[i].name);
    EXPECT_OK(store_.DeleteRow("reports", row, most));
  };
  std::vector<size_t> chunks;
  ASSERT_OK(ScanStoredRows(store_, "reports", ReportRange(0, info_.settings.id), [&](StoredRow&& row) {
    chunks.push_back(row.chunks.size());
    return absl::OkStatus();
  }));
  EXPECT_EQ(chunks, (std::vector<size_t>{1}));
}

TEST_F(RacesTest, PartsThatARepeatedBatchCutsDifferentlyAreAllThere) {
  const RowKey row{0, info_.settings.id, info_.metrics[0].id, 0};
  const std::string number = NewChunkNumber();
  const auto parts = [&](size_t bytes) {
    std::vector<Part> made;
    for (uint16_t i = 0; i < 4; ++i) made.push_back({NameOfPart(number, i), std::string(bytes, 'x')});
    return made;
  };
  // Three parts fit into the first put; the second one fails.
  int writes = 0;
  store_.before_write = [&](std::string_view) {
    return ++writes == 2 ? absl::UnavailableError("lost") : absl::OkStatus();
  };
  RowPuts first(metadata_, /*repeatable=*/true);
  ASSERT_OK(first.Put(row, parts(size_t{2} << 20)));
  EXPECT_THAT(first.Flush(), FailsWith(absl::StatusCode::kUnavailable, "lost"));
  // All four fit into one, of whose parts the first is there already.
  RowPuts second(metadata_, /*repeatable=*/true);
  ASSERT_OK(second.Put(row, parts(size_t{1} << 20)));
  ASSERT_OK(second.Flush());
  store_.page_columns = 100;
  ASSERT_OK_AND_ASSIGN(const Row stored, store_.GetRow("reports", EncodeRowKey(row), {}));
  std::set<std::string> names;
  for (const Item& item : stored.items) names.insert(item.column);
  for (const Part& part : parts(0)) EXPECT_TRUE(names.contains(part.name));
}

TEST_F(RacesTest, ADescriptionOfAnEarlierReportIsKnown) {
  EXPECT_OK(metadata_.CheckCurrent(info_));
  ASSERT_OK(metadata_.Remove(info_));
  EXPECT_THAT(metadata_.CheckCurrent(info_), FailsWith(absl::StatusCode::kNotFound, "'r'"));
  ASSERT_OK_AND_ASSIGN(const ReportInfo again, metadata_.Create(testing::ClicksReport()));
  EXPECT_THAT(metadata_.CheckCurrent(info_), FailsWith(absl::StatusCode::kFailedPrecondition, "'r'"));
  EXPECT_OK(metadata_.CheckCurrent(again));
}

}  // namespace
}  // namespace kvstore::reports
