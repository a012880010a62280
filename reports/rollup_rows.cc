#include "reports/rollup_rows.h"

#include <span>

#include "kvstore_api/call_scope.h"
#include "reports/row_key.h"
#include "reports/row_list.h"
#include "reports/status_macros.h"

namespace kvstore::reports {

absl::Status RemoveRollups(const Metadata& metadata, const ReportSettings& settings, uint64_t ended_by_s) {
  const auto remove = [&](std::span<const RowKey> rows) -> absl::Status {
    for (const RowKey& row : rows) {
      if (ended_by_s != UINT64_MAX && row.period_start_s + settings.period_s > ended_by_s) continue;
      KV_RETURN_IF_ERROR(CheckCall());
      KV_RETURN_IF_ERROR(metadata.store().DeleteRow(metadata.dataset(), EncodeRollupKey(row), {}));
    }
    return absl::OkStatus();
  };
  for (uint32_t salt = 0; salt < settings.salts; ++salt) {
    KV_RETURN_IF_ERROR(ListRollupRows(metadata.store(), metadata.dataset(),
                                      RollupRange(static_cast<uint8_t>(salt), settings.id), remove));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::reports
