#include "backend_api/row_rules.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "kvstore_api/in_doubt.h"

namespace kvstore {
namespace {

constexpr char kPresent[] = "condition: the column must be absent, but has a value";
constexpr char kAbsent[] = "condition: the column has no value";
constexpr char kAnother[] = "condition: the column's latest value is another one";

}  // namespace

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
    return absl::AlreadyExistsError(kPresent);
  }
  if (!newest) return absl::FailedPreconditionError(kAbsent);
  if (*newest == *condition.equals) return absl::OkStatus();
  return absl::FailedPreconditionError(kAnother);
}

bool IsUnfulfilled(const absl::Status& error) {
  if (IsInDoubt(error)) return false;
  // Backends name the place first, such as a shard.
  if (absl::IsAlreadyExists(error)) return absl::StrContains(error.message(), kPresent);
  return absl::IsFailedPrecondition(error) &&
         (absl::StrContains(error.message(), kAbsent) || absl::StrContains(error.message(), kAnother));
}

}  // namespace kvstore
