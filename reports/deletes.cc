#include "reports/deletes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "backend_api/outcome.h"
#include "kvstore_api/call_scope.h"
#include "reports/chunk.h"
#include "reports/chunk_number.h"
#include "reports/metadata_columns.h"
#include "reports/rollup_rows.h"
#include "reports/row_cells.h"
#include "reports/row_list.h"
#include "reports/row_puts.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Removes all rows of points that are there, and says whether there were any. An error is marked as in doubt
/// once some are gone.
absl::Status DeleteRows(const Metadata& metadata, const ReportSettings& settings, bool& some_gone) {
  some_gone = false;
  const auto remove = [&](std::span<const ListedRow> rows) -> absl::Status {
    for (const ListedRow& row : rows) {
      KV_RETURN_IF_ERROR(CheckCall());
      KV_RETURN_IF_ERROR(metadata.store().DeleteRow(metadata.dataset(), EncodeRowKey(row.key), {}));
      some_gone = true;
    }
    return absl::OkStatus();
  };
  for (uint32_t salt = 0; salt < settings.salts; ++salt) {
    absl::Status status = ListRows(metadata.store(), metadata.dataset(),
                                   ReportRange(static_cast<uint8_t>(salt), settings.id), remove);
    if (!status.ok()) return some_gone ? MarkInDoubt(std::move(status)) : status;
  }
  return absl::OkStatus();
}

/// Returns an error as that of a call that has changed something before.
absl::Status AfterSome(absl::Status status) { return status.ok() ? status : MarkInDoubt(std::move(status)); }

/// Puts the delete of a span of time, which is not empty, into all rows that it concerns.
absl::StatusOr<uint64_t> PutDeletes(const Metadata& metadata, const ReportInfo& info, TimeSpan span,
                                    RowPuts& puts) {
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
      KV_ASSIGN_OR_RETURN(const std::string bytes,
                          EncodeChunk(PointBlock(metric.kind, 0), {.deletes = {span}}));
      for (const RowKey& row : rows) {
        KV_RETURN_IF_ERROR(puts.Put(row, {{NameOfPart(number, 0), bytes}}));
      }
      touched += rows.size();
    }
  }
  KV_RETURN_IF_ERROR(puts.Flush());
  return touched;
}

}  // namespace

absl::StatusOr<uint64_t> DeletePoints(const Metadata& metadata, const ReportInfo& info, TimeSpan span) {
  span.from = std::max<int64_t>(span.from, 0);
  span.to = std::min(span.to, kMaxTimeMs + 1);
  if (span.from >= span.to) return 0;
  RowPuts puts(metadata, /*repeatable=*/false);
  absl::StatusOr<uint64_t> touched = PutDeletes(metadata, info, span, puts);
  // Also after an error: some rows may have been put before it.
  KV_RETURN_IF_ERROR(RemoveIfDropped(metadata, info));
  if (!touched.ok()) return puts.ErrorOf(touched.status());
  return touched;
}

absl::Status DropReport(const Metadata& metadata, const std::string& report) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, {}));
  bool some_gone = false;
  KV_RETURN_IF_ERROR(DeleteRows(metadata, info.settings, some_gone));
  absl::Status removed = metadata.Remove(info);
  if (!removed.ok()) return some_gone ? AfterSome(std::move(removed)) : removed;
  // Loaders that began before may have written rows where the scan had passed already, and somebody may have
  // made roll-ups meanwhile. From now on they are refused, and nobody else would find their rows, because the
  // ID is never given again. Whoever puts a row where this second scan has passed removes it
  // (RemoveIfDropped).
  KV_RETURN_IF_ERROR(AfterSome(DeleteRows(metadata, info.settings, some_gone)));
  return AfterSome(RemoveRollups(metadata, info.settings, UINT64_MAX));
}

absl::Status RemoveIfDropped(const Metadata& metadata, const ReportInfo& info) {
  const CellsWanted wanted{MetadataRow(info.name), {kInfoColumn}};
  const auto read = ReadCells(metadata.store(), metadata.dataset(), {&wanted, 1});
  // Without an answer the report counts as there: its points must not be removed by mistake.
  if (!read.ok() || !read->front().ok()) return absl::OkStatus();
  const Cells& cells = *read->front();
  if (const auto found = cells.find(kInfoColumn); found != cells.end()) {
    const auto settings = SettingsFromText(found->second.value);
    if (!settings.ok() || settings->id == info.settings.id) return absl::OkStatus();
  }
  const auto names = metadata.List();
  if (!names.ok()) return absl::OkStatus();
  for (const std::string& name : *names) {
    // IDs begin again if the dataset itself was dropped and made, or restored, meanwhile.
    const auto other = metadata.Get(name, {});
    if (!other.ok() || other->settings.id == info.settings.id) return absl::OkStatus();
  }
  bool some_gone = false;
  KV_RETURN_IF_ERROR(AfterSome(DeleteRows(metadata, info.settings, some_gone)));
  KV_RETURN_IF_ERROR(
      AfterSome(metadata.store().DeleteRow(metadata.dataset(), BatchesRow(info.settings.id), {})));
  return absl::NotFoundError(fmt::format(
      "report '{}' was dropped during this call; all of its points are gone, also those of this call",
      info.name));
}

}  // namespace kvstore::reports
