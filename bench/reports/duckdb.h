#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/harness/child.h"
#include "json/json.h"

namespace kvstore::bench {

/// Where DuckDB is found.
struct DuckDbOptions {
  /// A Python that has the packages duckdb and pyarrow.
  std::string python = "build/venv-duckdb/bin/python";
  std::string script = "bench/duckdb_reports.py";
};

/// DuckDB in a process of its own, to which bench/duckdb_reports.py speaks. Externally synchronised.
class DuckDb {
 public:
  /// folder   for its files, which must exist; the caller removes it.
  /// threads  that DuckDB may use.
  ///
  /// UNAVAILABLE says what is missing.
  static absl::StatusOr<std::unique_ptr<DuckDb>> Start(const DuckDbOptions& options,
                                                       const std::filesystem::path& folder, size_t threads);

  const std::string& version() const { return version_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// Sends a request, as the script describes them, and returns its answer. INTERNAL has the error of one
  /// that failed.
  absl::StatusOr<Json> Ask(const Json& request);

 private:
  DuckDb(Child child, std::filesystem::path folder) : child_(std::move(child)), folder_(std::move(folder)) {}

  Child child_;
  const std::filesystem::path folder_;
  std::string version_;
};

}  // namespace kvstore::bench
