#include "backends/rocksdb/status.h"

#include <fmt/format.h>

namespace kvstore::rocks {

absl::Status ToStatus(const rocksdb::Status& status, std::string_view action) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = fmt::format("cannot {}: {}", action, status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNoSpace()) {
    return absl::ResourceExhaustedError(message + "; free some space: the store goes on by itself");
  }
  // RocksDB reports an SST file that is gone or cut short as an I/O error of its path.
  if (status.IsPathNotFound()) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace kvstore::rocks
