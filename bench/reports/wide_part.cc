#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/reports/parts.h"
#include "bench/reports/question.h"

namespace kvstore::bench {
namespace {

constexpr FigureBar kWholeBar{.side = FigureBar::Side::kAtLeast, .limit = 0.8};
constexpr FigureBar kFilterBar{.side = FigureBar::Side::kAtMost, .limit = 50};

double MedianMs(const Histogram& times) { return static_cast<double>(times.Quantile(0.5)) / 1e6; }

absl::Status RunWhole(ReportsRun& run, reports::Reports& reports, const PointSet& set) {
  run.tell(fmt::format("summing a metric of {} points by country", set.points()));
  const Question question{.end_day = set.days, .group_by = {"country"}};
  const auto turns =
      AskByTurns(reports, run.duckdb, set, {&question, 1}, run.options().rounds, run.options().threads);
  if (!turns.ok()) return turns.status();
  const auto rate = [&](const Histogram& times) {
    return static_cast<double>(set.points()) / MedianMs(times) * 1000;
  };
  run.Add("whole metric by country", "points/s", rate(turns->ours));
  if (run.duckdb == nullptr) return absl::OkStatus();
  run.Add("whole metric by country, DuckDB", "points/s", rate(turns->duckdb));
  run.Add("whole metric by country, ours / DuckDB", "times", rate(turns->ours) / rate(turns->duckdb),
          kWholeBar);
  return absl::OkStatus();
}

/// Without roll-ups, then with one by country and day; both answers are compared with the points' sums.
absl::Status RunRollups(ReportsRun& run, reports::Reports& reports, const PointSet& set) {
  run.tell("asking for each day by country, without roll-ups and with them");
  const Question question{.end_day = set.days, .daily = true, .group_by = {"country"}};
  const auto ask = [&] {
    return AskByTurns(reports, nullptr, set, {&question, 1}, run.options().rounds, run.options().threads);
  };
  const auto without = ask();
  if (!without.ok()) return without.status();
  const reports::ReportChange change{
      .rollups = std::vector<reports::Rollup>{{.keys = {"country"}, .step_ms = kDayMs}}};
  if (auto status = reports.Alter(set.report, change); !status.ok()) return status;
  const auto begin = std::chrono::steady_clock::now();
  const auto made = reports.MakeRollups(set.report);
  if (!made.ok()) return made.status();
  const std::chrono::duration<double> making = std::chrono::steady_clock::now() - begin;
  const auto with = ask();
  if (!with.ok()) return with.status();
  // A roll-up of few points would take more than these, and is not kept.
  if (with->cost.from_rollups == 0 && run.options().size >= 1) {
    return absl::InternalError("the roll-up by country and day was made, and the query did not use it");
  }
  run.Add("by country and day, without roll-ups", "ms", MedianMs(without->ours));
  run.Add("by country and day, with a roll-up", "ms", MedianMs(with->ours));
  run.Add("roll-up: points summed", "points/s", static_cast<double>(set.points()) / making.count());
  run.Add("roll-up: on disk", "bytes", static_cast<double>(made->bytes_written));
  return absl::OkStatus();
}

/// A metric of which 31 countries have a million points.
absl::Status RunFilter(ReportsRun& run) {
  const PointSet set{.report = "filtered", .countries = 50, .apps = run.Scaled(81, 1), .genders = 1};
  const Question question{.end_day = set.days, .countries = 31, .group_by = {}};
  run.tell(fmt::format("summing {} points with 31 countries in one filter",
                       uint64_t{question.countries} * set.apps * set.days));
  OwnReports reports(run.store.store(), "bench_filtered");
  if (const auto time = LoadPoints(*reports, set, PointOrder::kBySeries); !time.ok()) return time.status();
  if (const auto bytes = reports.Settle(set.report); !bytes.ok()) return bytes.status();
  if (run.duckdb != nullptr) {
    if (const auto table = GiveToDuckDb(*run.duckdb, set); !table.ok()) return table.status();
  }
  const auto turns =
      AskByTurns(*reports, run.duckdb, set, {&question, 1}, 4 * run.options().rounds, run.options().threads);
  if (!turns.ok()) return turns.status();
  run.Add("a million points, 31 segments in one filter", "ms", MedianMs(turns->ours), kFilterBar);
  if (run.duckdb == nullptr) return absl::OkStatus();
  run.Add("a million points, 31 segments in one filter, DuckDB", "ms", MedianMs(turns->duckdb));
  return DropFromDuckDb(*run.duckdb, set);
}

}  // namespace

absl::Status RunWidePart(ReportsRun& run) {
  if (run.Wants("whole") || run.Wants("rollups")) {
    const PointSet set{.report = "wide", .countries = 50, .apps = run.Scaled(200, 1), .genders = 5};
    run.tell(fmt::format("loading a metric of {} points", set.points()));
    OwnReports reports(run.store.store(), "bench_wide");
    if (const auto time = LoadPoints(*reports, set, PointOrder::kBySeries); !time.ok()) return time.status();
    if (const auto bytes = reports.Settle(set.report); !bytes.ok()) return bytes.status();
    if (run.Wants("whole")) {
      if (run.duckdb != nullptr) {
        if (const auto table = GiveToDuckDb(*run.duckdb, set); !table.ok()) return table.status();
      }
      if (auto status = RunWhole(run, *reports, set); !status.ok()) return status;
      if (run.duckdb != nullptr) {
        if (auto status = DropFromDuckDb(*run.duckdb, set); !status.ok()) return status;
      }
    }
    if (run.Wants("rollups")) {
      if (auto status = RunRollups(run, *reports, set); !status.ok()) return status;
    }
  }
  return run.Wants("filter") ? RunFilter(run) : absl::OkStatus();
}

}  // namespace kvstore::bench
