#include "assembly/repair.h"

#include <utility>

#include "assembly/backend_config.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "backends/rocksdb/engine/log_repair.h"

namespace kvstore {

absl::StatusOr<std::optional<LeftOutLogs>> RepairLogs(const OpenOptions& given, bool apply) {
  OpenOptions options = given;
  options.create_if_missing = false;
  if (!FindBackendOfType(options, kRocksDb)) {
    return absl::InvalidArgumentError(
        "config: backends: none is of type rocksdb, and only that engine has logs that can be repaired");
  }
  absl::Status problem = Open(options).status();
  if (problem.ok()) return std::nullopt;
  if (!absl::IsDataLoss(problem)) return problem;
  LeftOutLogs left_out;
  {
    const auto dir = rocks::DataDir::Open(options.data, /*create=*/false);
    if (!dir.ok()) return dir.status();
    const auto damage = rocks::FindLogDamage(*dir);
    if (!damage.ok()) return damage.status();
    if (!*damage) return problem;
    left_out = {.log = (*damage)->log,
                .log_missing = (*damage)->missing,
                .kept_bytes = (*damage)->kept,
                .later_logs = (*damage)->later.size(),
                .left_out_bytes = (*damage)->left_out,
                .gone_bytes = (*damage)->gone,
                .changes = (*damage)->changes,
                .written_until_ms = (*damage)->written_until_ms};
    if (!apply) return left_out;
    auto folder = rocks::EndLogsAtDamage(*dir, **damage);
    if (!folder.ok()) return folder.status();
    left_out.folder = *std::move(folder);
  }
  if (auto status = Open(options).status(); !status.ok()) return status;
  return left_out;
}

}  // namespace kvstore
