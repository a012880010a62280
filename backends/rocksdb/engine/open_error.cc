#include "backends/rocksdb/engine/open_error.h"

#include <fmt/format.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "backends/rocksdb/engine/damage.h"
#include "backends/rocksdb/engine/log_repair.h"

namespace kvstore::rocks {
namespace {

namespace fs = std::filesystem;

/// Returns the tables whose index cannot be read, in order.
std::vector<std::string> UnreadableTables(const fs::path& database) {
  std::vector<std::string> tables;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(database, error)) {
    if (file.path().extension() != ".sst") continue;
    rocksdb::SstFileReader reader{rocksdb::Options()};
    if (!reader.Open(file.path().string()).ok()) tables.push_back(file.path().string());
  }
  std::sort(tables.begin(), tables.end());
  return tables;
}

}  // namespace

absl::Status ExplainOpenError(const DataDir& dir, const absl::Status& problem) {
  if (!absl::IsDataLoss(problem)) return problem;
  const std::string message(problem.message());
  if (const auto log = FindLogDamage(dir); log.ok() && *log) return DamagedLogError(message);
  const auto tables = UnreadableTables(dir.rocksdb());
  if (tables.empty()) return DamagedFileError(message);
  return DamagedFileError(fmt::format("{}; damaged tables: {}", message, fmt::join(tables, ", ")));
}

}  // namespace kvstore::rocks
