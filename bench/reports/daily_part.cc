#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/harness/folder.h"
#include "bench/reports/load_files.h"
#include "bench/reports/parts.h"
#include "bench/reports/question.h"
#include "bench/reports/served.h"

namespace kvstore::bench {
namespace {

constexpr FigureBar kLoadBar{.side = FigureBar::Side::kAtLeast, .limit = 3e6, .any_size = true};
constexpr FigureBar kMillionBar{.side = FigureBar::Side::kAtLeast, .limit = 1e6, .any_size = true};
constexpr FigureBar kDiskBar{.side = FigureBar::Side::kAtMost, .limit = 3, .any_size = true};
constexpr FigureBar kDashboardBar{.side = FigureBar::Side::kAtMost, .limit = 5};
constexpr FigureBar kAheadBar{.side = FigureBar::Side::kAtMost, .limit = 1};

/// How many dashboards are looked at in a round: p99 needs some.
constexpr uint32_t kDashboards = 100;

/// The ways to load that are not measured with the points of the dashboard.
absl::Status RunOtherLoads(ReportsRun& run) {
  const PointSet by_day{.report = "by_day", .metrics = run.Scaled(1'000, 10), .days = 40};
  run.tell(fmt::format("loading {} points day by day", by_day.points()));
  {
    OwnReports reports(run.store.store(), "bench_by_day");
    const auto time = LoadPoints(*reports, by_day, PointOrder::kByDay);
    if (!time.ok()) return time.status();
    run.Add("load in batches of 100,000, day by day", "points/s", time->rate());
  }
  const PointSet json{.report = "json", .metrics = run.Scaled(50, 1)};
  run.tell(fmt::format("loading {} points as JSON", json.points()));
  {
    OwnReports reports(run.store.store(), "bench_json");
    const auto time = LoadJson(run.store.store(), reports.dataset(), json);
    if (!time.ok()) return time.status();
    run.Add("load by write_points in JSON", "points/s", time->rate(), kMillionBar);
  }
  const PointSet served{.report = "served", .metrics = run.Scaled(100, 1)};
  run.tell(fmt::format("loading {} points through a server", served.points()));
  OwnReports reports(run.store.store(), "bench_served");
  auto server = ServedReports::Start(run.store, reports.dataset());
  if (!server.ok()) return server.status();
  const auto time = LoadPoints(**server, served, PointOrder::kBySeries);
  if (!time.ok()) return time.status();
  run.Add("load through a server in batches of 100,000", "points/s", time->rate(), kMillionBar);
  return absl::OkStatus();
}

/// Loads files as `kv report load` does.
absl::Status RunFileLoads(ReportsRun& run) {
  const auto folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  const PointSet set{.report = "files", .countries = 50, .apps = run.Scaled(20, 1), .genders = 5};
  run.tell(fmt::format("loading {} points from files", set.points()));
  if (auto status = WriteLoadFiles(set, folder->path()); !status.ok()) return status;
  for (const char* file : {"points.csv", "points.jsonl"}) {
    OwnReports reports(run.store.store(), "bench_files");
    const auto time = LoadFromFile(*reports, set, folder->path() / file);
    if (!time.ok()) return time.status();
    run.Add(fmt::format("load from {}", file), "points/s", time->rate(), kMillionBar);
  }
  return absl::OkStatus();
}

absl::Status RunDashboards(ReportsRun& run, reports::Reports& reports, const PointSet& set) {
  run.tell("looking at dashboards: 1 metric, 90 of 400 days, 50 segments");
  std::vector<Question> dashboards;
  for (uint32_t i = 0; i < kDashboards; ++i) {
    // Metrics and months that lie far from each other.
    dashboards.push_back({.metric = i * 617 % set.metrics,
                          .first_day = i * 37 % (set.days - 90),
                          .end_day = i * 37 % (set.days - 90) + 90,
                          .daily = true,
                          .group_by = {"country", "app", "gender"}});
  }
  const auto turns =
      AskByTurns(reports, run.duckdb, set, dashboards, run.options().rounds, run.options().threads);
  if (!turns.ok()) return turns.status();
  const auto ms = [](const Histogram& times, double share) {
    return static_cast<double>(times.Quantile(share)) / 1e6;
  };
  run.Add("dashboard p50", "ms", ms(turns->ours, 0.5), kDashboardBar);
  run.Add("dashboard p99", "ms", ms(turns->ours, 0.99));
  if (run.duckdb == nullptr) return absl::OkStatus();
  run.Add("dashboard p50, DuckDB", "ms", ms(turns->duckdb, 0.5));
  run.Add("dashboard p99, DuckDB", "ms", ms(turns->duckdb, 0.99));
  run.Add("dashboard p50, ours / DuckDB", "times", ms(turns->ours, 0.5) / ms(turns->duckdb, 0.5), kAheadBar);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDailyPart(ReportsRun& run) {
  if (!run.Wants("load") && !run.Wants("disk") && !run.Wants("dashboard")) return absl::OkStatus();
  const PointSet set{.report = "daily", .metrics = run.Scaled(1'000, 10)};
  run.tell(fmt::format("loading {} points series by series", set.points()));
  OwnReports reports(run.store.store(), "bench_daily");
  const auto time = LoadPoints(*reports, set, PointOrder::kBySeries);
  if (!time.ok()) return time.status();
  if (run.Wants("load")) {
    run.Add("load in batches of 100,000", "points/s", time->rate(), kLoadBar);
    for (const auto loads : {RunOtherLoads, RunFileLoads}) {
      if (auto status = loads(run); !status.ok()) return status;
    }
  }
  run.tell("compacting");
  const auto bytes = reports.Settle(set.report);
  if (!bytes.ok()) return bytes.status();
  const auto of_point = [&](double all) { return all / static_cast<double>(set.points()); };
  if (run.Wants("disk")) run.Add("on disk", "bytes/point", of_point(static_cast<double>(*bytes)), kDiskBar);
  if (run.duckdb != nullptr) {
    run.tell("giving DuckDB the same points");
    const auto table = GiveToDuckDb(*run.duckdb, set);
    if (!table.ok()) return table.status();
    if (run.Wants("load")) run.Add("load from CSV, DuckDB", "points/s", table->load_rate);
    if (run.Wants("disk")) {
      run.Add("on disk, DuckDB", "bytes/point", of_point(table->bytes));
      run.Add("on disk, Parquet with zstd", "bytes/point", of_point(table->parquet_bytes));
    }
  }
  if (run.Wants("dashboard")) {
    if (auto status = RunDashboards(run, *reports, set); !status.ok()) return status;
  }
  return run.duckdb == nullptr ? absl::OkStatus() : DropFromDuckDb(*run.duckdb, set);
}

}  // namespace kvstore::bench
