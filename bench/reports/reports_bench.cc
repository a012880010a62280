#include "bench/reports/reports_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "bench/harness/folder.h"
#include "bench/harness/report.h"
#include "bench/reports/parts.h"

namespace kvstore::bench {
namespace {

absl::Status CheckOptions(const ReportsOptions& options) {
  for (const std::string& part : options.parts) {
    if (std::find(std::begin(kReportsParts), std::end(kReportsParts), part) != std::end(kReportsParts))
      continue;
    return absl::InvalidArgumentError(
        fmt::format("parts: '{}' is none of {}", part, fmt::join(kReportsParts, ", ")));
  }
  if (!(options.size > 0 && options.size <= 1)) {
    return absl::InvalidArgumentError(
        fmt::format("size: must be above 0 and at most 1, not {}", options.size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReportsReport> BenchReports(const ReportsOptions& options,
                                           const std::function<void(const std::string& what)>& tell) {
  if (auto status = CheckOptions(options); !status.ok()) return status;
  const auto store = BenchStore::Create(options.dir);
  if (!store.ok()) return store.status();
  Report machine;
  DescribeMachine(machine);
  ReportsRun run{.store = **store,
                 .tell = tell,
                 .report = {.options = options, .cores = machine.cores, .cpu = machine.cpu}};
  const auto folder = Folder::Make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<DuckDb> duckdb;
  if (options.duckdb) {
    auto started = DuckDb::Start(*options.duckdb, folder->path(), options.threads);
    if (!started.ok()) return started.status();
    duckdb = *std::move(started);
    run.duckdb = duckdb.get();
    run.report.duckdb_version = duckdb->version();
  }
  for (const auto part : {RunDailyPart, RunWidePart, RunChartPart, RunGrowthPart}) {
    if (auto status = part(run); !status.ok()) return status;
  }
  return std::move(run.report);
}

}  // namespace kvstore::bench
