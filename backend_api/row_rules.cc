#include "backend_api/row_rules.h"

#include <algorithm>

namespace kvstore {

std::vector<std::string> SortedColumns(std::vector<std::string> columns) {
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

bool Collides(std::span<const CellWrite> cells, uint64_t assigned) {
  for (const CellWrite& given : cells) {
    if (given.timestamp != assigned) continue;
    for (const CellWrite& other : cells) {
      if (!other.timestamp && other.column == given.column) return true;
    }
  }
  return false;
}

absl::Status CheckCondition(const Condition& condition, const std::optional<std::string_view>& newest) {
  if (!condition.equals) {
    if (!newest) return absl::OkStatus();
    return absl::AlreadyExistsError("condition: the column must be absent, but has a value");
  }
  if (!newest) return absl::FailedPreconditionError("condition: the column has no value");
  if (*newest == *condition.equals) return absl::OkStatus();
  return absl::FailedPreconditionError("condition: the column's latest value is another one");
}

}  // namespace kvstore
