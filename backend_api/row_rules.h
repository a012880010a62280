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

/// What every backend of rows does in the same way.
namespace kvstore {

/// Ascending, each once.
std::vector<std::string> SortedColumns(std::vector<std::string> columns);

/// Whether a cell of the put that brings its timestamp has this one, and the column of one that has none:
/// then another one must be assigned.
bool Collides(std::span<const CellWrite> cells, uint64_t assigned);

/// Whether the condition holds of a column whose newest visible value is `newest`; nullopt: it has none. The
/// codes are those of Condition.
absl::Status CheckCondition(const Condition& condition, const std::optional<std::string_view>& newest);

}  // namespace kvstore
