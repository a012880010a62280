#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "reports/compaction.h"
#include "tests/reports/rollup_fixture.h"

/// Calls that are cancelled while they work on the rows of a report.
namespace kvstore::reports {
namespace {

constexpr uint64_t kDayMs = 86'400'000;

class CancelledTest : public testing::RollupFixture {
 protected:
  /// Does `work` once for each of its calls of the store, and cancels it during that call. It must end
  /// without going on to more than two others.
  ///
  /// prepare  called before each time, so that there is something to do.
  /// check    called after each time.
  void CancelDuringEachCall(const std::function<absl::Status()>& work, const std::function<void()>& prepare,
                            const std::function<void()>& check) {
    int cancelled_times = 0;
    for (int moment = 1;; ++moment) {
      SCOPED_TRACE("cancelled during call " + std::to_string(moment) + " of the store");
      prepare();
      std::atomic<bool> cancelled{false};
      int calls = 0;
      const auto count = [&] {
        cancelled = ++calls >= moment;
        return absl::OkStatus();
      };
      store_.before_read = store_.before_write = [&](std::string_view) { return count(); };
      store_.before_scan = [&](const ScanOptions&) { return count(); };
      absl::Status status;
      {
        const CallScope scope(CallLimits{.cancelled = &cancelled});
        status = work();
      }
      store_.before_read = store_.before_write = nullptr;
      store_.before_scan = nullptr;
      check();
      if (HasFailure()) return;
      if (!cancelled) {
        EXPECT_OK(status);
        break;
      }
      EXPECT_LE(calls, moment + 2);
      // Work that was cancelled during its last call may have come to its end.
      if (status.ok()) continue;
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
      ++cancelled_times;
    }
    EXPECT_GT(cancelled_times, 5) << "otherwise there was nothing to do";
  }

  /// Adds a point to two rows, for the first one under an ID.
  void AddTwo() {
    last_ = "batch " + std::to_string(++batches_);
    Repeat();
    Write(31 * kDay, 1, /*add=*/true);
    expected_ += 2;
  }
  /// Writes the last batch with an ID, once more if it was written before.
  void Repeat() {
    Batch batch(info_);
    const std::optional<std::string_view> segments[] = {"c0", "a0"};
    ASSERT_OK(batch.Add(kClicks, kDay, segments, Number::Integer(1)));
    ASSERT_OK(WriteBatch(metadata_, batch, {.batch = last_, .add = true}));
  }
  /// The sum of all points is what was written, with roll-ups and without.
  void ExpectAll() {
    Query query = Days(0, 60);
    query.step = std::nullopt;
    query.group_by = {};
    const QueryResult result = Ask(query);
    ASSERT_EQ(result.series.size(), 1u);
    ASSERT_EQ(result.series[0].points.size(), 1u);
    EXPECT_EQ(result.series[0].points[0].second, Number::Integer(expected_));
    Ask(Days(0, 60));
  }

  int64_t expected_ = 0;
  int batches_ = 0;
  std::string last_;
};

TEST_F(CancelledTest, ACompactionEndsSoonAndCountsNothingTwice) {
  const auto prepare = [&] {
    for (int i = 0; i < 2; ++i) AddTwo();
  };
  const auto check = [&] {
    ExpectAll();
    // The batch is known, wherever its chunk is by now.
    Repeat();
    ExpectAll();
  };
  CancelDuringEachCall([&] { return CompactReport(metadata_, "r", {}).status(); }, prepare, check);
  ASSERT_OK(CompactReport(metadata_, "r", {}));
  ExpectAll();
}

TEST_F(CancelledTest, MakingRollupsEndsSoonAndNoAnswerIsWrong) {
  // One roll-up more or less, so that some are made and others are removed.
  bool both = false;
  const auto prepare = [&] {
    AddTwo();
    both = !both;
    std::vector<Rollup> rollups = {{.keys = {"country"}, .step_ms = kDayMs}};
    if (both) rollups.push_back({.keys = {}, .step_ms = kDayMs});
    Declare(rollups);
  };
  CancelDuringEachCall([&] { return MakeRollups(metadata_, "r", {.keep_all = true}).status(); }, prepare,
                       [&] { ExpectAll(); });
  Make({.keep_all = true});
  EXPECT_EQ(Ask(Days(0, 60)).cost.from_rollups, 2u) << "what was cancelled is made the next time";
}

}  // namespace
}  // namespace kvstore::reports
