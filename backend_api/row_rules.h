#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

/// Rules that all backends of rows share.
namespace kvstore {

/// Returns the columns in ascending order, without duplicates.
std::vector<std::string> SortedColumns(std::vector<std::string> columns);

/// Returns the lowest timestamp of a cell that has not expired.
///
/// ttl_ms  The dataset's; 0: cells never expire.
/// now     The time, in ms.
inline uint64_t OldestVisible(uint64_t ttl_ms, uint64_t now) {
  return ttl_ms == 0 || now <= ttl_ms ? 0 : now - ttl_ms;
}

/// Whether two cells of a put would be the same one with this assigned timestamp: one that brings it, and one
/// of the same column without a timestamp. Then another timestamp must be assigned.
bool Collides(std::span<const CellWrite> cells, uint64_t assigned);

/// Checks a condition on a column. The error codes are those of Condition.
///
/// newest  the column's newest visible value; nullopt: it has none.
absl::Status CheckCondition(const Condition& condition, const std::optional<std::string_view>& newest);

/// Whether an error of a put says that its condition did not hold, and not that the put was refused for
/// another reason with the same code. It is known by its text, since the error of another process has no
/// more.
bool IsUnfulfilled(const absl::Status& error);

}  // namespace kvstore
