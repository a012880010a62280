#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/reports/duckdb.h"
#include "json/json.h"

/// The options of a run of the benchmark of reports, and the figures that it has found.
namespace kvstore::bench {

struct ReportsOptions {
  std::string dir;     ///< Where the store's folder is made; empty: the system's place for temporary files.
  double size = 1;     ///< Share of the points, metrics and series of a full run, in (0, 1].
  size_t threads = 2;  ///< The threads that a query, or DuckDB, may use.
  int rounds = 5;      ///< How often each question is asked, at least.
  std::vector<std::string> parts;       ///< Some of kReportsParts; empty: all.
  std::optional<DuckDbOptions> duckdb;  ///< DuckDB gets the same points and questions in the same run.
};

/// The parts of a run, in their order. "load", "disk" and "dashboard" share points, as do "whole", "filter"
/// and "rollups".
inline constexpr const char* kReportsParts[] = {"load",   "disk",    "dashboard", "whole",
                                                "filter", "rollups", "chart",     "growth"};

/// The limit that a figure should keep.
struct FigureBar {
  enum class Side : uint8_t { kAtLeast, kAtMost };
  Side side = Side::kAtMost;
  double limit = 0;
  bool any_size = false;  ///< The bar also says something about a run of less than full size.
};

/// One figure.
struct ReportsFigure {
  std::string name;
  std::string unit;  ///< "points/s", "bytes/point", "ms", "bytes", "times"
  double value = 0;
  std::optional<FigureBar> bar;
};

struct ReportsReport {
  ReportsOptions options;
  unsigned cores = 0;
  std::string cpu;
  std::string duckdb_version;  ///< Empty if DuckDB was not asked.
  std::vector<ReportsFigure> figures;
};

/// Returns whether a figure meets its bar; nullopt if it has none, or none that applies to a run of this
/// size.
std::optional<bool> Met(const ReportsReport& report, const ReportsFigure& figure);

Json ToJson(const ReportsReport& report);

}  // namespace kvstore::bench
