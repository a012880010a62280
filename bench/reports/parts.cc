#include "bench/reports/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/harness/report.h"

namespace kvstore::bench {

bool ReportsRun::Wants(std::string_view part) const { return Wanted(options().parts, std::string(part)); }

uint32_t ReportsRun::Scaled(uint32_t full, uint32_t least) const {
  return std::max(least, static_cast<uint32_t>(std::lround(full * options().size)));
}

OwnReports::OwnReports(KVStore& store, std::string dataset)
    : store_(store), dataset_(std::move(dataset)), reports_(reports::LocalReports(store, dataset_)) {}

OwnReports::~OwnReports() { store_.DropDataset(dataset_, {}).IgnoreError(); }

absl::StatusOr<uint64_t> OwnReports::Settle(const std::string& report) {
  const auto merged = reports_->Compact(report);
  if (!merged.ok()) return merged.status();
  const auto compacted = store_.Compact(dataset_, nullptr);
  if (!compacted.ok()) return compacted.status();
  return compacted->bytes_after;
}

absl::StatusOr<DuckDbTable> GiveToDuckDb(DuckDb& duckdb, const PointSet& set) {
  const auto csv = duckdb.folder() / (set.report + ".csv");
  if (auto status = WriteCsv(set, csv); !status.ok()) return status;
  const auto answer = duckdb.Ask({{"op", "load"}, {"table", set.report}, {"csv", csv.string()}});
  std::error_code ignored;
  std::filesystem::remove(csv, ignored);
  if (!answer.ok()) return answer.status();
  if ((*answer)["rows"] != set.points()) {
    return absl::DataLossError(
        fmt::format("DuckDB has {} rows of {} points", (*answer)["rows"].dump(), set.points()));
  }
  return DuckDbTable{.load_rate = static_cast<double>(set.points()) / (*answer)["seconds"].get<double>(),
                     .bytes = (*answer)["bytes"].get<double>(),
                     .parquet_bytes = (*answer)["parquet_bytes"].get<double>()};
}

absl::Status DropFromDuckDb(DuckDb& duckdb, const PointSet& set) {
  return duckdb.Ask({{"op", "drop"}, {"table", set.report}}).status();
}

}  // namespace kvstore::bench
