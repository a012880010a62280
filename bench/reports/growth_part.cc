#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/report.h"
#include "bench/reports/parts.h"
#include "bench/reports/question.h"

namespace kvstore::bench {
namespace {

/// A question about 90 days of 50 series, whatever else there is.
Question Dashboard(const PointSet& set, uint64_t i) {
  return {.metric = static_cast<uint32_t>(i % set.metrics),
          .first_day = 100,
          .end_day = 190,
          .daily = true,
          .countries = 5,
          .group_by = {"country", "app", "gender"}};
}

/// Reports of one kind, with so many metrics, in a dataset of their own.
class Grown {
 public:
  Grown(ReportsRun& run, const std::string& dataset, const PointSet& set, uint32_t count)
      : run_(run), reports_(run.store.store(), dataset) {
    for (uint32_t i = 0; i < count; ++i) {
      PointSet& one = sets_.emplace_back(set);
      one.report += std::to_string(i);
      Check(LoadPoints(*reports_, one, PointOrder::kBySeries).status());
      Check(reports_->Compact(one.report).status());
    }
    Check(run.store.store().Compact(reports_.dataset(), nullptr).status());
    // Answers are checked once, before they are timed.
    const Question question = Dashboard(sets_.front(), 0);
    Check(AskByTurns(*reports_, nullptr, sets_.front(), {&question, 1}, 0, run.options().threads).status());
  }

  /// Asks question number i, of one report after the other.
  uint64_t Ask(uint64_t i) {
    const PointSet& set = sets_[i % sets_.size()];
    Check(reports_->Run(ToQuery(set, Dashboard(set, i / sets_.size()), run_.options().threads)).status());
    return 1;
  }

 private:
  ReportsRun& run_;
  OwnReports reports_;
  std::vector<PointSet> sets_;
};

}  // namespace

absl::Status RunGrowthPart(ReportsRun& run) {
  if (!run.Wants("growth")) return absl::OkStatus();
  const PointSet base{.report = "base", .metrics = run.Scaled(40, 2)};
  run.tell("loading reports, and ten times as much");
  Grown small(run, "bench_small", base, 1);
  const Rounds rounds{.rounds = run.options().rounds, .seconds = 0.4};
  const auto compare = [&](const char* what, const PointSet& set, uint32_t count) {
    run.tell(fmt::format("a dashboard beside ten times the {}", what));
    Grown large(run, "bench_large", set, count);
    const GrowthResult result = CompareGrowth(
        what, rounds, [&](uint64_t i) { return small.Ask(i); }, [&](uint64_t i) { return large.Ask(i); });
    run.Add(fmt::format("dashboard beside ten times the {}", what), "times", result.factor);
  };
  PointSet set = base;
  set.days *= 10;
  compare("points", set, 1);
  set = base;
  set.metrics *= 10;
  compare("metrics", set, 1);
  set = base;
  set.countries *= 10;
  compare("segments", set, 1);
  compare("reports", base, 10);
  return absl::OkStatus();
}

}  // namespace kvstore::bench
