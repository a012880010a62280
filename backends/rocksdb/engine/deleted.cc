#include "backends/rocksdb/engine/deleted.h"

#include "backend_api/scan_budget.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {

std::optional<std::string> StoppedAt(rocksdb::Iterator& it) {
  if (it.Valid() || !it.status().IsIncomplete()) return std::nullopt;
  std::string key;
  if (!it.GetProperty("rocksdb.iterator.internal-key", &key).ok()) return std::nullopt;
  return key;
}

absl::Status PassDeleted(rocksdb::Iterator& it, bool backwards) {
  while (!it.Valid()) {
    const auto at = StoppedAt(it);
    if (!at) return absl::OkStatus();
    SpendScanBudget(kMaxDeletedInARow);
    if (auto status = CheckCall(); !status.ok()) return status;
    backwards ? it.SeekForPrev(*at) : it.Seek(*at);
  }
  return absl::OkStatus();
}

}  // namespace kvstore::rocks
