#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/harness/bench_store.h"
#include "bench/reports/figures.h"
#include "bench/reports/load_points.h"

/// The parts of a run, and what they share.
namespace kvstore::bench {

/// A run of the benchmark. Externally synchronised.
struct ReportsRun {
  BenchStore& store;
  DuckDb* duckdb = nullptr;  ///< Null: it is not asked.
  const std::function<void(const std::string& what)>& tell;
  ReportsReport report;

  const ReportsOptions& options() const { return report.options; }
  bool Wants(std::string_view part) const;
  /// Returns a number of a full run as it is at this size, but not less than `least`.
  uint32_t Scaled(uint32_t full, uint32_t least) const;
  void Add(std::string name, std::string unit, double value, std::optional<FigureBar> bar = std::nullopt) {
    report.figures.push_back({std::move(name), std::move(unit), value, bar});
  }
};

/// A dataset of reports, which the destructor drops.
class OwnReports {
 public:
  OwnReports(KVStore& store, std::string dataset);
  ~OwnReports();
  OwnReports(const OwnReports&) = delete;
  OwnReports& operator=(const OwnReports&) = delete;

  const std::string& dataset() const { return dataset_; }
  reports::Reports& operator*() { return *reports_; }
  reports::Reports* operator->() { return reports_.get(); }
  /// Compacts a report and then the dataset, as a server does in quiet hours. Returns the bytes on disk of
  /// the dataset.
  absl::StatusOr<uint64_t> Settle(const std::string& report);

 private:
  KVStore& store_;
  const std::string dataset_;
  const std::unique_ptr<reports::Reports> reports_;
};

/// The figures of DuckDB for the points that it was given.
struct DuckDbTable {
  double load_rate =
      0;             ///< Points a second, from CSV into a table that is sorted by metric, segments and time.
  double bytes = 0;  ///< The size of the database's file.
  double parquet_bytes = 0;  ///< The size of the same rows as Parquet with zstd.
};
/// Gives DuckDB the points of a set, by way of a file of CSV, as the table of the report's name.
absl::StatusOr<DuckDbTable> GiveToDuckDb(DuckDb& duckdb, const PointSet& set);
/// Removes the table.
absl::Status DropFromDuckDb(DuckDb& duckdb, const PointSet& set);

/// "load", "disk" and "dashboard": 1,000 metrics with 50 series of 400 days.
absl::Status RunDailyPart(ReportsRun& run);
/// "whole", "filter" and "rollups": one metric of 20 million points, and one of which a filter takes a
/// million.
absl::Status RunWidePart(ReportsRun& run);
/// "chart": five metrics of a report with a million metrics.
absl::Status RunChartPart(ReportsRun& run);
/// "growth": a dashboard's question beside ten times the points, metrics, segments and reports.
absl::Status RunGrowthPart(ReportsRun& run);

}  // namespace kvstore::bench
