#include "tests/reports/report_history.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/shift_clock.h"
#include "reports/compaction.h"
#include "reports/deletes.h"
#include "reports/metadata.h"
#include "reports/rollup.h"
#include "reports/run_query.h"
#include "reports/writer.h"
#include "tests/reports/report_choices.h"
#include "tests/reports/report_model.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using namespace reports;  // NOLINT(google-build-using-namespace): the history speaks of nothing else

constexpr int64_t kHour = ReportChoices::kHour;
constexpr int64_t kHours = ReportChoices::kHours;
/// Steps after which a batch may be repeated still: fewer than the days for which it is known.
constexpr uint64_t kStepsOfBatch = 25;

/// A clock that stands still at the moment when it was made, as far as a history of some minutes can tell:
/// what expires is the same for the store and for the model.
class StandingClock {
 public:
  StandingClock() : stands_at_ms_(WallClockMs()) {}
  ~StandingClock() { ShiftWallClock(0); }
  StandingClock(const StandingClock&) = delete;
  StandingClock& operator=(const StandingClock&) = delete;

  void Adjust() {
    const auto real = static_cast<int64_t>(WallClockMs()) - shift_ms_;
    const int64_t shift = static_cast<int64_t>(stands_at_ms_) - real;
    if (shift_ms_ - shift < 60'000) return;
    shift_ms_ = shift;
    ShiftWallClock(shift);
  }
  /// Until it is called again with 0, the clock differs by so much.
  void Shift(int64_t ms) const { ShiftWallClock(shift_ms_ + ms); }
  uint64_t now_ms() const { return stands_at_ms_; }

 private:
  const uint64_t stands_at_ms_;
  int64_t shift_ms_ = 0;
};

class History {
 public:
  History(KVStore& store, const HistoryOptions& options)
      : options_(options),
        choices_(options.seed),
        random_(choices_.random()),
        metadata_(store, "reports"),
        model_(ReportInfo{}) {}

  uint64_t Run() {
    Create();
    for (uint64_t i = 0; i < options_.steps && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i) + " of seed " + std::to_string(options_.seed));
      step_ = i;
      if (options_.before_step) options_.before_step(i);
      if (options_.expires) clock_.Adjust();
      Step();
    }
    return from_rollups_;
  }

 private:
  void Create() {
    auto created = metadata_.Create(choices_.Report());
    ASSERT_OK(created);
    model_ = ReportModel(*created);
  }

  void Step() {
    switch (random_.Below(24)) {
      case 0:
        return Delete();
      case 1:
        return Compact();
      case 2:
        if (model_.info().keys.size() < 4 && random_.OneIn(4)) return AddKey();
        return RepeatOld();
      case 3:
        return Declare();
      case 4:
      case 5:
        return Roll();
      case 6:
        if (options_.expires && random_.OneIn(8)) return Expire();
        return AskWide();
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        return Write();
      default:
        from_rollups_ += ExpectModelsAnswer(metadata_, model_, choices_.PlainQuery(model_.info()));
    }
  }

  /// Tries until it has gone through.
  template <typename Do>
  void Insist(const Do& action) {
    for (int tries = 0;; ++tries) {
      const absl::Status status = action();
      if (status.ok()) return;
      ASSERT_TRUE(options_.faulty && tries < 1'000) << status;
    }
  }

  void Write() {
    const auto points = choices_.Points(model_.info(), random_.OneIn(5) ? 300 : 20);
    WriteBatchOptions options;
    options.add = random_.OneIn(3);
    if (options_.faulty || random_.OneIn(2)) options.batch = "batch " + std::to_string(batches_++);
    Insist([&] { return Load(points, options); });
    model_.Write(points, options.add);
    if (options.batch.empty()) return;
    old_ = {points, options};
    old_step_ = step_;
  }

  /// One attempt of a loader, which has a clock of its own.
  absl::Status Load(const std::vector<ReportModel::Point>& points, const WriteBatchOptions& options) {
    constexpr int64_t kDay = 24 * kHour;
    if (options_.loaders_apart) clock_.Shift((static_cast<int64_t>(random_.Below(81)) - 40) * kDay);
    const absl::Status status =
        WriteBatch(metadata_, choices_.BatchOf(model_.info(), points), options).status();
    if (options_.loaders_apart) clock_.Shift(0);
    return status;
  }

  /// A batch that has long been written is written again, as a loader does that missed the answer; or another
  /// one under its ID.
  void RepeatOld() {
    if (old_.first.empty() || step_ - old_step_ > kStepsOfBatch) return;
    if (random_.OneIn(4)) return MistakeForOld();
    Insist([&] { return Load(old_.first, old_.second); });
  }

  void MistakeForOld() {
    std::vector<ReportModel::Point> points = old_.first;
    WriteBatchOptions options = old_.second;
    if (random_.OneIn(2)) {
      options.add = !options.add;
    } else {
      points.push_back(choices_.Points(model_.info(), 1).front());
      points.back().time = (kHours + 1) * kHour;  // of no other point
    }
    Insist([&] {
      const absl::Status status = Load(points, options);
      if (!absl::IsFailedPrecondition(status)) return status.ok() ? absl::InternalError("written") : status;
      EXPECT_NE(status.message().find(options.batch), std::string::npos) << status;
      return absl::OkStatus();
    });
  }

  void Delete() {
    ReportInfo info = model_.info();
    std::set<size_t> metrics;
    info.metrics.clear();
    for (size_t i = 0; i < 4; ++i) {
      if (!random_.OneIn(2)) continue;
      metrics.insert(i);
      info.metrics.push_back(model_.info().metrics[i]);
    }
    const auto from = static_cast<int64_t>(random_.Below(kHours));
    const TimeSpan span{from * kHour, (from + 1 + static_cast<int64_t>(random_.Below(72))) * kHour};
    Insist([&] { return DeletePoints(metadata_, info, span).status(); });
    model_.Delete(metrics, span.from, span.to);
  }

  void Compact() {
    CompactionOptions options;
    // Small, so that rows have runs in their middle.
    if (random_.OneIn(2)) options.max_bytes = 500 + random_.Below(3'000);
    const auto result = CompactReport(metadata_, "flights", options);
    // One that broke off is not tried again: what it leaves behind is what is tested.
    if (!options_.faulty) {
      ASSERT_OK(result);
    }
  }

  void AddKey() {
    const SegmentKey key{"key " + std::to_string(model_.info().keys.size()), "none"};
    Insist([&] { return metadata_.AddKey("flights", key); });
    model_.AddKey(key);
    // A batch is the same one if it is repeated with the default of the new key.
    for (ReportModel::Point& point : old_.first) point.segments.push_back(*key.default_value);
  }

  void Declare() {
    const std::vector<Rollup> rollups = choices_.Rollups(model_.info());
    Insist([&] { return metadata_.SetRollups("flights", rollups); });
  }

  void Roll() {
    // The rows are so small that few roll-ups are worth it.
    const auto made = MakeRollups(metadata_, "flights", {.keep_all = !random_.OneIn(4)});
    if (!options_.faulty) {
      ASSERT_OK(made);
    }
  }

  /// The points before some moment expire. It lies between two hours, and never goes back.
  void Expire() {
    expired_hours_ += static_cast<int64_t>(random_.Below(72));
    const int64_t before = std::min(expired_hours_, kHours - 48) * kHour + kHour / 2;
    const uint64_t retention = clock_.now_ms() - static_cast<uint64_t>(before);
    Insist([&] { return metadata_.SetRetention("flights", retention); });
    model_.Expire(before);
  }

  void AskWide() { AskBothWays(metadata_, choices_.WideQuery(model_.info())).IgnoreError(); }

  const HistoryOptions options_;
  ReportChoices choices_;
  Random& random_;
  StandingClock clock_;
  const Metadata metadata_;
  ReportModel model_;
  uint64_t batches_ = 0;
  uint64_t from_rollups_ = 0;
  int64_t expired_hours_ = 0;
  std::pair<std::vector<ReportModel::Point>, WriteBatchOptions> old_;
  uint64_t old_step_ = 0;
  uint64_t step_ = 0;
};

}  // namespace

uint64_t RunReportHistory(KVStore& store, const HistoryOptions& options) {
  return History(store, options).Run();
}

}  // namespace kvstore::testing
