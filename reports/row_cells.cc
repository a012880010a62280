#include "reports/row_cells.h"

#include <algorithm>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

ReadOptions OptionsOf(const CellsWanted& wanted, std::string marker) {
  return {
      .columns = wanted.columns, .limit = static_cast<uint32_t>(kMaxPageCells), .marker = std::move(marker)};
}

/// Returns the cells of a page and of those after it.
absl::StatusOr<Cells> ReadOn(KVStore& store, const std::string& dataset, const CellsWanted& wanted,
                             Row&& page) {
  Cells cells;
  while (true) {
    for (Item& item : page.items) cells[std::move(item.column)] = std::move(item.cells.front());
    if (page.marker.empty()) return cells;
    KV_RETURN_IF_ERROR(CheckCall());
    KV_ASSIGN_OR_RETURN(page, store.GetRow(dataset, wanted.row, OptionsOf(wanted, std::move(page.marker))));
  }
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<Cells>>> ReadCells(KVStore& store, const std::string& dataset,
                                                             std::span<const CellsWanted> wanted) {
  std::vector<absl::StatusOr<Cells>> all;
  while (all.size() < wanted.size()) {
    KV_RETURN_IF_ERROR(CheckCall());
    const auto left = wanted.subspan(all.size(), std::min(wanted.size() - all.size(), kMaxBatchRows));
    std::vector<RowRead> reads;
    for (const CellsWanted& one : left) reads.push_back({one.row, OptionsOf(one, "")});
    KV_ASSIGN_OR_RETURN(auto pages, store.GetRows(dataset, reads));
    for (size_t i = 0; i < left.size(); ++i) {
      // A row that was left out of a full batch is read when it is the first of one.
      if (i > 0 && absl::IsResourceExhausted(pages[i].status())) break;
      if (pages[i].ok()) {
        all.push_back(ReadOn(store, dataset, left[i], *std::move(pages[i])));
      } else {
        all.emplace_back(pages[i].status());
      }
    }
  }
  return all;
}

}  // namespace kvstore::reports
