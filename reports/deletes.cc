#include "reports/deletes.h"

#include <algorithm>
#include <span>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/rollup_rows.h"
#include "reports/row_list.h"
#include "reports/row_puts.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Removes all rows of points that are there.
absl::Status DeleteRows(const Metadata& metadata, const ReportSettings& settings) {
  const auto remove = [&](std::span<const ListedRow> rows) -> absl::Status {
    for (const ListedRow& row : rows) {
      KV_RETURN_IF_ERROR(CheckCall());
      KV_RETURN_IF_ERROR(metadata.store().DeleteRow(metadata.dataset(), EncodeRowKey(row.key), {}));
    }
    return absl::OkStatus();
  };
  for (uint32_t salt = 0; salt < settings.salts; ++salt) {
    KV_RETURN_IF_ERROR(ListRows(metadata.store(), metadata.dataset(),
                                ReportRange(static_cast<uint8_t>(salt), settings.id), remove));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> DeletePoints(const Metadata& metadata, const ReportInfo& info, TimeSpan span) {
  span.from = std::max<int64_t>(span.from, 0);
  span.to = std::min(span.to, kMaxTimeMs + 1);
  if (span.from >= span.to) return 0;
  const ReportSettings& settings = info.settings;
  const std::string number = NewChunkNumber();
  uint64_t touched = 0;
  for (const Metric& metric : info.metrics) {
    for (uint32_t salt = 0; salt < settings.salts; ++salt) {
      const RowsWanted wanted{.salt = static_cast<uint8_t>(salt),
                              .report = settings.id,
                              .metric = metric.id,
                              .first_period_s = PeriodOf(span.from, settings.period_s),
                              .last_period_s = PeriodOf(span.to - 1, settings.period_s),
                              .period_s = settings.period_s};
      // No chunk is read: what is deleted may be more than there is memory for.
      KV_ASSIGN_OR_RETURN(const std::vector<RowKey> rows,
                          ExistingKeysOf(metadata.store(), metadata.dataset(), wanted));
      RowPuts puts(metadata, /*repeatable=*/false);
      KV_ASSIGN_OR_RETURN(const std::string bytes,
                          EncodeChunk(PointBlock(metric.kind, 0), {.deletes = {span}}));
      for (const RowKey& row : rows) {
        KV_RETURN_IF_ERROR(puts.Put(row, {{NameOfPart(number, 0), bytes}}));
      }
      KV_RETURN_IF_ERROR(puts.Flush());
      touched += rows.size();
    }
  }
  return touched;
}

absl::Status DropReport(const Metadata& metadata, const std::string& report) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, {}));
  KV_RETURN_IF_ERROR(DeleteRows(metadata, info.settings));
  KV_RETURN_IF_ERROR(metadata.Remove(info));
  // Loaders that began before may have written behind the scan, and somebody may have made roll-ups
  // meanwhile. From now on they are refused, and nobody else would find their rows, because the ID is never
  // given again.
  KV_RETURN_IF_ERROR(DeleteRows(metadata, info.settings));
  return RemoveRollups(metadata, info.settings, UINT64_MAX);
}

}  // namespace kvstore::reports
