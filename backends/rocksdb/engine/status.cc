#include "backends/rocksdb/engine/status.h"

#include <fmt/format.h>

#include <regex>
#include <string>

#include "base/advice.h"

namespace kvstore::rocks {
namespace {

/// Logs are read only when a store is opened, and damage.h has the advice for that: in an open store it is a
/// table that is damaged.
constexpr char kDamagedTable[] =
    "restore the store from a backup; kv repair mends logs (.log) only. The other datasets can still be "
    "read. To do without the one whose file is damaged: kv dataset drop NAME --yes";

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
  if (status.IsCorruption()) return Advise(absl::DataLossError(message), kDamagedTable);
  if (status.IsNoSpace()) {
    return absl::ResourceExhaustedError(message +
                                        "; free some space: writes then succeed again by themselves");
  }
  // By a drop, or by the end of a migration to elsewhere, that crossed a flush or a compaction.
  if (status.IsColumnFamilyDropped()) {
    return absl::NotFoundError(
        fmt::format("cannot {}: it was dropped, or has left this store, in the meantime", action));
  }
  // RocksDB reports an SST file that is gone or cut short as an I/O error of its path.
  if (status.IsPathNotFound()) return Advise(absl::DataLossError(message), kDamagedTable);
  return absl::UnavailableError(message);
}

}  // namespace kvstore::rocks
