#include "tests/backend_suite/row_model.h"

#include <algorithm>

namespace kvstore::testing {

void RowModel::Put(std::string_view row, std::span<const CellWrite> cells, uint64_t assigned) {
  for (const CellWrite& cell : cells) {
    rows_[std::string(row)][std::string(cell.column)][cell.timestamp.value_or(assigned)] = cell.value;
  }
}

void RowModel::Delete(std::string_view row, const DeleteOptions& options) {
  const auto found = rows_.find(row);
  if (found == rows_.end()) return;
  if (options.columns) {
    for (const std::string& column : *options.columns) found->second.erase(column);
  } else if (options.cells) {
    for (const CellName& cell : *options.cells) found->second[cell.column].erase(cell.timestamp);
  } else {
    rows_.erase(found);
  }
}

RowModel::Cells RowModel::Visible(const Cells& cells, uint64_t now) const {
  Cells visible;
  for (const auto& [timestamp, value] : cells) {
    if (spec.max_versions != 0 && visible.size() == spec.max_versions) break;
    if (spec.ttl_ms != 0 && now > timestamp + spec.ttl_ms) continue;
    visible.emplace(timestamp, value);
  }
  return visible;
}

bool RowModel::Holds(std::string_view row, const Condition& condition, uint64_t now) const {
  const auto items = Get(row, {{std::string(condition.column)}}, 1, {}, now);
  if (!condition.equals) return items.empty();
  return !items.empty() && items[0].cells[0].value == *condition.equals;
}

std::vector<Item> RowModel::Get(std::string_view row, const std::optional<std::vector<std::string>>& columns,
                                uint32_t versions, const TimeRange& range, uint64_t now) const {
  std::vector<Item> items;
  const auto found = rows_.find(row);
  if (found == rows_.end()) return items;
  for (const auto& [column, cells] : found->second) {
    if (columns && std::find(columns->begin(), columns->end(), column) == columns->end()) continue;
    Item item{column, {}};
    for (const auto& [timestamp, value] : Visible(cells, now)) {
      if (timestamp < range.start || timestamp >= range.end || item.cells.size() == versions) continue;
      item.cells.push_back({timestamp, value});
    }
    if (!item.cells.empty()) items.push_back(std::move(item));
  }
  return items;
}

std::vector<ScannedRow> RowModel::Scan(const RowRange& range, const ScanOptions& options,
                                       uint64_t now) const {
  std::vector<ScannedRow> rows;
  for (const auto& [key, columns] : rows_) {
    if (key < range.start || (!range.end.empty() && key >= range.end)) continue;
    auto items = Get(key, options.columns, options.versions, options.time_range, now);
    if (!items.empty()) rows.push_back({key, std::move(items), false});
  }
  return rows;
}

void RowModel::Reclaim(uint64_t now) {
  for (auto& [key, columns] : rows_) {
    for (auto& [column, cells] : columns) cells = Visible(cells, now);
  }
}

}  // namespace kvstore::testing
