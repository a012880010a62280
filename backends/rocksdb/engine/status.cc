#include "backends/rocksdb/engine/status.h"

#include <fmt/format.h>

#include <regex>
#include <string>

namespace kvstore::rocks {
namespace {

/// RocksDB looks for a missing table also under the name that versions before 3.0 gave it, and reports that
/// name, which never existed. This puts the right one into the message.
std::string NameTables(const std::string& message) {
  static const std::regex old("(/[0-9]{6,})\\.ldb");
  return std::regex_replace(message, old, "$1.sst");
}

}  // namespace

absl::Status ToStatus(const rocksdb::Status& status, std::string_view action) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = fmt::format("cannot {}: {}", action, NameTables(status.ToString()));
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNoSpace()) {
    return absl::ResourceExhaustedError(message +
                                        "; free some space: writes then succeed again by themselves");
  }
  // RocksDB reports an SST file that is gone or cut short as an I/O error of its path.
  if (status.IsPathNotFound()) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace kvstore::rocks
